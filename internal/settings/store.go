package settings

import (
	"strings"
	"time"
)

// Defaults of REDIS_URL, which are what envoyproxy/ratelimit has always had.
const (
	mainSocket      = "/var/run/nutcracker/ratelimit.sock"
	perSecondSocket = "/var/run/nutcracker/ratelimitpersecond.sock"
)

func (r *reader) store(s *Settings) {
	r.section = "Store"
	var backend, choice string
	r.choice(&backend, "BACKEND_TYPE", "redis", []string{"redis", "memcache"}, "Kind of shared store. `memcache` is not supported.")
	if backend == "memcache" {
		r.problem("BACKEND_TYPE", "is not supported: memcached cannot count and check in one step, so limits could not be held",
			"use Redis (BACKEND_TYPE=redis, REDIS_SOCKET_TYPE=tcp, REDIS_URL=host:port), or unset it for the memory store")
	}
	r.choice(&choice, "GALE_STORE", "auto", []string{"auto", StoreMemory, StoreRedis},
		"Where counters are. `auto`: Redis if REDIS_URL or BACKEND_TYPE=redis is set, else the memory of this process, which makes limits per process.")
	s.Store = choice
	if choice == "auto" {
		s.Store = StoreMemory
		if r.isSet("REDIS_URL") || r.env["BACKEND_TYPE"] != "" {
			s.Store = StoreRedis
		}
	}
	r.redis(s)
	r.storeNotices(s, choice)
}

func (r *reader) redis(s *Settings) {
	r.section = "Redis"
	c := &s.Redis
	opTimeout := r.redisNode(&c.Main, "REDIS_", mainSocket, "")
	if opTimeout {
		s.Counting.OpTimeout = c.Main.Timeout
	}
	r.boolean(&c.UsePerSecond, "REDIS_PERSECOND", false, "Count limits per second in a Redis of their own, set by REDIS_PERSECOND_….")
	perSecond := r.redisNode(&c.PerSecond, "REDIS_PERSECOND_", perSecondSocket, " of the Redis for limits per second")
	if c.UsePerSecond && perSecond {
		s.Counting.OpTimeout = max(c.Main.Timeout, c.PerSecond.Timeout)
	}
	r.text(&c.ClientCert, "REDIS_TLS_CLIENT_CERT", "", "Client certificate, PEM.")
	r.text(&c.ClientKey, "REDIS_TLS_CLIENT_KEY", "", "Its key, PEM.")
	r.text(&c.CACert, "REDIS_TLS_CACERT", "", "CA of the server, PEM, besides those of the system.")
	r.boolean(&c.SkipHostnameVerification, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", false, "Accept a certificate of another name; the chain is still verified.")
	r.boolean(&c.HealthFollowsConnections, "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", false, "Not healthy while Redis cannot be asked, also after the start.")
	r.duration(&c.RetryInitial, "REDIS_STARTUP_INITIAL_INTERVAL", time.Second, time.Millisecond, "Time before Redis is tried again at the start.")
	r.duration(&c.RetryMax, "REDIS_STARTUP_MAX_INTERVAL", 30*time.Second, time.Millisecond, "What that grows to.")
	r.duration(&c.RetryUntil, "REDIS_STARTUP_MAX_ELAPSED_TIME", 0, 0, "Give up, and end the process, when Redis is not there after this; 0 is never. The doors are open meanwhile.")
	for _, other := range []struct{ set, needs, file string }{
		{"REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY", c.ClientKey}, {"REDIS_TLS_CLIENT_KEY", "REDIS_TLS_CLIENT_CERT", c.ClientCert},
	} {
		if r.env[other.set] != "" && other.file == "" {
			r.problem(other.needs, "is not set, and "+other.set+" is", "set both, or neither")
		}
	}
}

// redisNode declares the variables of one Redis, and reports whether its
// timeout was set.
func (r *reader) redisNode(n *RedisNode, prefix, socket, of string) (timeoutSet bool) {
	r.required(&n.URL, prefix+"URL", socket, "Address"+of+": `host:port`, a socket's path, or `redis://user:password@host:port/db`.")
	r.choice(&n.Network, prefix+"SOCKET_TYPE", "unix", []string{"unix", "tcp"}, "Network"+of+". If it is not set, an address that is not a path is tcp.")
	if !r.isSet(prefix+"SOCKET_TYPE") && !strings.HasPrefix(n.URL, "/") && !strings.HasPrefix(n.URL, ".") {
		n.Network = "tcp"
	}
	var kind string
	r.choice(&kind, prefix+"TYPE", "SINGLE", []string{"SINGLE", "SENTINEL", "CLUSTER"}, "Deployment"+of+". `SENTINEL` and `CLUSTER` are not supported yet.")
	if kind != "SINGLE" {
		r.problem(prefix+"TYPE", "is not supported yet", "set "+prefix+"TYPE=SINGLE and name one server (for sentinel, the address of the master) in "+prefix+"URL")
	}
	r.text(&n.Auth, prefix+"AUTH", "", "`password` or `user:password`"+of+".")
	r.boolean(&n.TLS, prefix+"TLS", false, "Connect with TLS.")
	r.integer(&n.PoolSize, prefix+"POOL_SIZE", 10, 0, 100_000, "Connections"+of+"; 0 is the library's default.")
	r.duration(&n.Timeout, prefix+"TIMEOUT", time.Second, time.Millisecond, "Bounds connecting and every operation"+of+"; a request's own deadline comes first.")
	r.duration(&n.PipelineWindow, prefix+"PIPELINE_WINDOW", 0, 0, "Time to wait for more to send in one pipeline; 0 sends what came while the connection was busy.")
	r.integer(&n.PipelineLimit, prefix+"PIPELINE_LIMIT", 0, 0, 1_000_000, "Commands in one pipeline; 0 is 1024.")
	r.onEmpty(prefix + "POOL_ON_EMPTY_BEHAVIOR")
	r.noEffect(prefix+"POOL_ON_EMPTY_WAIT_DURATION", "a request waits within its own deadline.")
	r.noEffect(prefix+"SENTINEL_AUTH", "Redis Sentinel is not supported yet.")
	r.noEffect(prefix+"CLUSTER_PIPELINE_PARALLELISM", "Redis Cluster is not supported yet.")
	return r.isSet(prefix + "TIMEOUT")
}

// onEmpty declares what a request does when all connections are in use. Here
// requests share connections, so that there is one answer: they wait for their
// turn in a pipeline, within their deadline, in a bounded queue.
func (r *reader) onEmpty(name string) {
	var on string
	r.choice(&on, name, "WAIT", []string{"WAIT", "CREATE", "ERROR"},
		"Requests share connections in pipelines and wait for their turn, within their deadline. `CREATE` and `ERROR` are accepted and mean the same.")
	if on != "WAIT" {
		r.notice("%s=%s has no effect here: requests share connections in pipelines and wait for their turn, within their deadline", name, on)
	}
}

// storeNotices says what the choice of the store leaves unused.
func (r *reader) storeNotices(s *Settings, choice string) {
	if s.Store == StoreRedis {
		return
	}
	for _, name := range []string{"REDIS_URL", "REDIS_SOCKET_TYPE", "REDIS_AUTH", "REDIS_TLS", "REDIS_PERSECOND", "REDIS_PERSECOND_URL"} {
		if !r.isSet(name) {
			continue
		}
		if choice == "auto" {
			r.notice("%s has no effect: REDIS_URL is not set, so limits are counted in this process only; set REDIS_URL to share them", name)
		} else {
			r.notice("%s has no effect: GALE_STORE=memory counts limits in this process only", name)
		}
	}
}
