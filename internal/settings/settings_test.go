package settings

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

func TestDocsAreCurrent(t *testing.T) {
	const path = "../../docs/configuration.md"
	var want bytes.Buffer
	if err := WriteDocs(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the code says; go test ./internal/settings -update writes it", path)
	}
}

func TestEveryVariableIsDocumentedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range Variables() {
		if seen[v.Name] {
			t.Errorf("%s is declared twice", v.Name)
		}
		seen[v.Name] = true
		if v.Doc == "" || v.Section == "" || v.Type == "" && !v.NoEffect {
			t.Errorf("%s lacks type, section or meaning: %+v", v.Name, v)
		}
	}
	// Every variable of envoyproxy/ratelimit and its libraries.
	for _, name := range strings.Fields(reference) {
		if !seen[name] {
			t.Errorf("%s is a setting of envoyproxy/ratelimit and unknown here", name)
		}
	}
}

const reference = `HOST PORT DEBUG_HOST DEBUG_PORT GRPC_HOST GRPC_PORT GRPC_UDS GRPC_MAX_CONNECTION_AGE
GRPC_MAX_CONNECTION_AGE_GRACE GRPC_SERVER_USE_TLS GRPC_SERVER_TLS_CERT GRPC_SERVER_TLS_KEY GRPC_CLIENT_TLS_CACERT
GRPC_CLIENT_TLS_SAN LOG_LEVEL LOG_FORMAT CONFIG_TYPE FORCE_START_WITHOUT_INITIAL_CONFIG MERGE_DOMAIN_CONFIG
RUNTIME_ROOT RUNTIME_SUBDIRECTORY RUNTIME_APPDIRECTORY RUNTIME_IGNOREDOTFILES RUNTIME_WATCH_ROOT
CONFIG_GRPC_XDS_NODE_ID CONFIG_GRPC_XDS_NODE_METADATA CONFIG_GRPC_XDS_SERVER_URL
CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS CONFIG_GRPC_XDS_SERVER_USE_TLS
CONFIG_GRPC_XDS_CLIENT_TLS_CERT CONFIG_GRPC_XDS_CLIENT_TLS_KEY CONFIG_GRPC_XDS_SERVER_TLS_CACERT
CONFIG_GRPC_XDS_SERVER_TLS_SAN XDS_CLIENT_BACKOFF_INITIAL_INTERVAL XDS_CLIENT_BACKOFF_MAX_INTERVAL
XDS_CLIENT_BACKOFF_RANDOM_FACTOR XDS_CLIENT_BACKOFF_JITTER XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES DISABLE_STATS USE_STATSD
USE_DOG_STATSD USE_PROMETHEUS STATSD_HOST STATSD_PORT STATS_FLUSH_INTERVAL EXTRA_TAGS USE_DOG_STATSD_MOGRIFIERS
PROMETHEUS_ADDR PROMETHEUS_PATH PROMETHEUS_MAPPER_YAML PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS STATSD_PROTOCOL
GOSTATS_FLUSH_INTERVAL_SECONDS GOSTATS_LOGGING_SINK_DISABLED BACKEND_TYPE EXPIRATION_JITTER_MAX_SECONDS
LOCAL_CACHE_SIZE_IN_BYTES NEAR_LIMIT_RATIO CACHE_KEY_PREFIX STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT SHADOW_MODE
QUOTA_MODE RESPONSE_DYNAMIC_METADATA LIMIT_RESPONSE_HEADERS_ENABLED LIMIT_LIMIT_HEADER LIMIT_REMAINING_HEADER
LIMIT_RESET_HEADER HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED REDIS_PERSECOND REDIS_SOCKET_TYPE REDIS_PERSECOND_SOCKET_TYPE
REDIS_TYPE REDIS_PERSECOND_TYPE REDIS_URL REDIS_PERSECOND_URL REDIS_POOL_SIZE REDIS_PERSECOND_POOL_SIZE REDIS_AUTH
REDIS_PERSECOND_AUTH REDIS_SENTINEL_AUTH REDIS_PERSECOND_SENTINEL_AUTH REDIS_TLS REDIS_PERSECOND_TLS
REDIS_TLS_CLIENT_CERT REDIS_TLS_CLIENT_KEY REDIS_TLS_CACERT REDIS_TLS_SKIP_HOSTNAME_VERIFICATION REDIS_TIMEOUT
REDIS_PERSECOND_TIMEOUT REDIS_PIPELINE_WINDOW REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PIPELINE_LIMIT
REDIS_PERSECOND_PIPELINE_LIMIT REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM
REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR REDIS_HEALTH_CHECK_ACTIVE_CONNECTION
REDIS_STARTUP_INITIAL_INTERVAL REDIS_STARTUP_MAX_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME MEMCACHE_HOST_PORT MEMCACHE_SRV
MEMCACHE_SRV_REFRESH MEMCACHE_MAX_IDLE_CONNS MEMCACHE_TLS MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION
MEMCACHE_TLS_CLIENT_CERT MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_CACERT TRACING_ENABLED TRACING_EXPORTER_PROTOCOL
TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE TRACING_SERVICE_INSTANCE_ID TRACING_SAMPLING_RATE`

func TestEmptyEnvironmentIsEnough(t *testing.T) {
	s, notices, err := FromEnv([]string{"PATH=/bin", "HOME=/root"})
	if err != nil || len(notices) != 0 {
		t.Fatalf("error %v, notices %q", err, notices)
	}
	if s.Store != StoreMemory || s.GRPC.Port != 8081 || s.HTTP.Port != 8080 || s.Debug.Port != 6070 || s.Stats.Sink != SinkStatsd {
		t.Errorf("unexpected defaults: %+v", s)
	}
	if s.Counting.ExpirationJitter != 5*time.Minute || s.Counting.NearLimitRatio != 0.8 || s.Lifecycle.DrainTimeout != 20*time.Second {
		t.Errorf("unexpected defaults: %+v", s)
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		env  string
		get  func(Settings) any
		want any
	}{
		{"GRPC_HOST=::", func(s Settings) any { return s.GRPC.Host }, "::"},
		{"GRPC_PORT=0", func(s Settings) any { return s.GRPC.Port }, 0},
		{"GRPC_PORT=0x10", func(s Settings) any { return s.GRPC.Port }, 16},
		{"GRPC_MAX_CONNECTION_AGE=0", func(s Settings) any { return s.GRPC.MaxConnectionAge }, time.Duration(0)},
		{"LOG_LEVEL=WARNING", func(s Settings) any { return s.Log.Level }, "warning"},
		{"LOG_FORMAT=JSON", func(s Settings) any { return s.Log.JSON }, true},
		{"EXPIRATION_JITTER_MAX_SECONDS=-1", func(s Settings) any { return s.Counting.ExpirationJitter }, time.Duration(0)},
		{"SHADOW_MODE=T", func(s Settings) any { return s.Answers.ShadowMode }, true},
		{"DISABLE_STATS=true USE_PROMETHEUS=true", func(s Settings) any { return s.Stats.Sink }, SinkNone},
		{"USE_STATSD=false", func(s Settings) any { return s.Stats.Sink }, SinkJSON},
		{"USE_STATSD=false USE_PROMETHEUS=1", func(s Settings) any { return s.Stats.Sink }, SinkPrometheus},
		{"USE_STATSD=false USE_DOG_STATSD=1", func(s Settings) any { return s.Stats.Sink }, SinkDogStatsd},
		{"EXTRA_TAGS=zone:eu.west,env:a|b", func(s Settings) any { return s.Stats.ExtraTags }, map[string]string{"zone": "eu.west", "env": "a|b"}},
		{"REDIS_URL=redis:6379", func(s Settings) any { return []string{s.Store, s.Redis.Main.Network} }, []string{"redis", "tcp"}},
		{"REDIS_URL=/run/redis.sock", func(s Settings) any { return s.Redis.Main.Network }, "unix"},
		{"REDIS_URL=redis:6379 REDIS_SOCKET_TYPE=unix", func(s Settings) any { return s.Redis.Main.Network }, "unix"},
		{"BACKEND_TYPE=redis", func(s Settings) any { return []string{s.Store, s.Redis.Main.URL} }, []string{"redis", mainSocket}},
		{"BACKEND_TYPE=", func(s Settings) any { return s.Store }, "memory"},
		{"GALE_STORE=memory REDIS_URL=x:1", func(s Settings) any { return s.Store }, "memory"},
		{"REDIS_TIMEOUT=50ms", func(s Settings) any { return s.Counting.OpTimeout }, 50 * time.Millisecond},
		{"USE_STATSD=false USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=A DOG_STATSD_MOGRIFIER_A_PATTERN=^x DOG_STATSD_MOGRIFIER_A_NAME=y DOG_STATSD_MOGRIFIER_A_TAGS=k:$1",
			func(s Settings) any { return s.Stats.Mogrifiers },
			[]Mogrifier{{Pattern: "^x", Name: "y", Tags: map[string]string{"k": "$1"}}}},
	} {
		s, _, err := FromEnv(strings.Fields(c.env))
		if err != nil {
			t.Errorf("%s: %v", c.env, err)
		} else if got := c.get(s); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.env, got, c.want)
		}
	}
}

func TestProblemsNameVariableValueAndWayOut(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"REDIS_TIMEOUT=10", `REDIS_TIMEOUT="10" is not a duration; write a number and a unit, for example 10s`},
		{"REDIS_POOL_SIZE=", `REDIS_POOL_SIZE="" is not a whole number; write digits only, for example 10`},
		{"PORT=70000", `PORT="70000" is out of range; write a number from 0 to 65535`},
		{"STATSD_PORT=tcp://10.0.0.1:8125", `enableServiceLinks: false`},
		{"SHADOW_MODE=yes", `SHADOW_MODE="yes" is neither true nor false; write true or false (1, 0, t, f also do)`},
		{"LOG_LEVEL=loud", `LOG_LEVEL="loud" is not a value that it can have; write panic or fatal`},
		{"STATS_FLUSH_INTERVAL=0", `STATS_FLUSH_INTERVAL="0" is too short; write 1ms or more`},
		{"NEAR_LIMIT_RATIO=80", `NEAR_LIMIT_RATIO="80" is not a number from 0 to 1`},
		{"NEAR_LIMIT_RATIO=NaN", `NEAR_LIMIT_RATIO="NaN" is not a number from 0 to 1`},
		{"EXTRA_TAGS=a:b:c", `EXTRA_TAGS="a:b:c" has an item "a:b:c" that is not key:value`},
		{"USE_PROMETHEUS=true", `more than one stats sink at the same time`},
		{"CONFIG_TYPE=GRPC_XDS_SOTW", `CONFIG_TYPE="GRPC_XDS_SOTW" is not supported yet`},
		{"BACKEND_TYPE=memcache", `BACKEND_TYPE="memcache" is not supported`},
		{"REDIS_TYPE=sentinel", `REDIS_TYPE="sentinel" is not supported yet`},
		{"REDIS_URL=", `REDIS_URL="" is set but empty; unset it, or give it a value`},
		{"REDIS_TLS_CLIENT_CERT=/c.pem", `REDIS_TLS_CLIENT_KEY="" is not set, and REDIS_TLS_CLIENT_CERT is; set both, or neither`},
		{"GRPC_SERVER_USE_TLS=true", `GRPC_SERVER_TLS_KEY="" is not set, and GRPC_SERVER_USE_TLS is true`},
		{"GRPC_SERVER_USE_TLS=1 GRPC_SERVER_TLS_CERT=/a/c GRPC_SERVER_TLS_KEY=/b/k", `must be in the same directory`},
		{"GALE_STOER=memory", `GALE_STOER="memory" is no setting of gale-rls; did you mean GALE_STORE?`},
		{"GALE_SOMETHING_ELSE_ENTIRELY=1", `GALE_SOMETHING_ELSE_ENTIRELY="1" is no setting of gale-rls; unset it`},
		{"USE_DOG_STATSD_MOGRIFIERS=A DOG_STATSD_MOGRIFIER_A_PATTERN=(", `DOG_STATSD_MOGRIFIER_A_PATTERN="(" is not a regular expression`},
		{"USE_DOG_STATSD_MOGRIFIERS=A", `DOG_STATSD_MOGRIFIER_A_NAME="" is not set`},
		{"PROMETHEUS_PATH=metrics", `PROMETHEUS_PATH="metrics" is not a path`},
	} {
		_, _, err := FromEnv(strings.Fields(c.env))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.env, err, c.want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, _, err := FromEnv([]string{"PORT=x", "REDIS_TIMEOUT=1", "GALE_X=1"})
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatalf("%v is no *Problem", err)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 3 {
		t.Errorf("want three problems, got:\n%v", err)
	}
}

func TestNotices(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"TRACING_ENABLED=true", "TRACING_ENABLED is set and has no effect here: tracing is not supported yet."},
		{"REDIS_CLUSTER_PIPELINE_PARALLELISM=5", "REDIS_CLUSTER_PIPELINE_PARALLELISM is set and has no effect here"},
		{"REDIS_URL=x:1 REDIS_POOL_ON_EMPTY_BEHAVIOR=create", "REDIS_POOL_ON_EMPTY_BEHAVIOR=CREATE has no effect here"},
		{"REDIS_AUTH=x", "REDIS_AUTH has no effect: REDIS_URL is not set"},
		{"REDIS_POOLSIZE=5", "REDIS_POOLSIZE is set and is no setting; did you mean REDIS_POOL_SIZE?"},
		{"GRPC_SERVER_TLS_CERT=/x", "the gRPC door is plain text"},
	} {
		_, notices, err := FromEnv(strings.Fields(c.env))
		if err != nil || !slices.ContainsFunc(notices, func(n string) bool { return strings.Contains(n, c.want) }) {
			t.Errorf("%s: error %v, notices %q, want %q", c.env, err, notices, c.want)
		}
	}
}

func TestServiceLinksOfAServiceNamedLikeUsAreNoSettings(t *testing.T) {
	links := map[string]string{
		"GALE_RLS_SERVICE_HOST": "10.0.0.1", "GALE_RLS_SERVICE_PORT": "8081", "GALE_RLS_SERVICE_PORT_GRPC": "8081",
		"GALE_RLS_PORT": "tcp://10.0.0.1:8081", "GALE_RLS_PORT_8081_TCP": "tcp://10.0.0.1:8081", "GALE_RLS_PORT_8081_TCP_ADDR": "10.0.0.1",
	}
	var env []string
	for k := range maps.Keys(links) {
		env = append(env, k+"="+links[k])
	}
	if _, notices, err := FromEnv(env); err != nil || len(notices) > 0 {
		t.Errorf("error %v, notices %q", err, notices)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	_, notices, err := FromEnv([]string{"REDIS_SENTINEL_AUTH=hunter2", "REDIS_AUTHS=hunter2", "GALE_STORE=memory", "REDIS_URL=redis://u:hunter2@h:1", "REDIS_PERSECOND_TYPE=x"})
	if text := strings.Join(notices, "\n") + err.Error(); strings.Contains(text, "hunter2") {
		t.Errorf("a secret is shown:\n%s", text)
	}
}
