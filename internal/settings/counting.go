package settings

import (
	"math"
	"regexp"
	"time"
)

func (r *reader) checkMogrifier(prefix string, m Mogrifier) {
	if m.Pattern == "" {
		r.problem(prefix+"_PATTERN", "is not set, and USE_DOG_STATSD_MOGRIFIERS names it", "give it a regular expression, or take it off that list")
	} else if _, err := regexp.Compile(m.Pattern); err != nil {
		r.problem(prefix+"_PATTERN", "is not a regular expression ("+err.Error()+")", "correct it")
	}
	if m.Name == "" {
		r.problem(prefix+"_NAME", "is not set, and USE_DOG_STATSD_MOGRIFIERS names it", "give it a name, or take it off that list")
	}
	for k, v := range m.Tags {
		if k == "" || v == "" {
			r.problem(prefix+"_TAGS", "has a tag without key or value", "write key:value,key:value")
		}
	}
}

func (r *reader) answers(s *Settings) {
	r.section = "Answers"
	a := &s.Answers
	r.boolean(&a.ShadowMode, "SHADOW_MODE", false, "Answer OK whatever the limits say; statuses and statistics tell the truth.")
	r.boolean(&a.QuotaMode, "QUOTA_MODE", false, "Treat every descriptor as a quota: a request is refused only when all of them are over.")
	r.boolean(&a.DynamicMetadata, "RESPONSE_DYNAMIC_METADATA", false, "Repeat request and rules' metadata in the answer.")
	r.boolean(&a.Headers, "LIMIT_RESPONSE_HEADERS_ENABLED", false, "Add three response headers about the limit that is closest.")
	r.text(&a.HeaderLimit, "LIMIT_LIMIT_HEADER", "RateLimit-Limit", "Name of the first.")
	r.text(&a.HeaderRemaining, "LIMIT_REMAINING_HEADER", "RateLimit-Remaining", "Name of the second.")
	r.text(&a.HeaderReset, "LIMIT_RESET_HEADER", "RateLimit-Reset", "Name of the third.")
	r.boolean(&a.IETFHeaders, "GALE_RATELIMIT_HEADERS", false, "Add the IETF fields `RateLimit-Policy` and `RateLimit`, which tell about every limit.")
	r.integer(&a.MaxDescriptors, "GALE_MAX_DESCRIPTORS", 10000, 1, math.MaxInt32, "Descriptors of one request; more are refused as invalid.")
}

func (r *reader) counting(s *Settings) {
	r.section = "Counting"
	c := &s.Counting
	r.text(&c.KeyPrefix, "CACHE_KEY_PREFIX", "", "Put before the name of every counter.")
	r.ratio(&c.NearLimitRatio, "NEAR_LIMIT_RATIO", 0.8, "Part of a limit from which hits count as near it.")
	var jitter int
	r.integer(&jitter, "EXPIRATION_JITTER_MAX_SECONDS", 300, math.MinInt32, math.MaxInt32,
		"Seconds, at random below this, that a counter lives on after its window; 0 or less is none.")
	c.ExpirationJitter = time.Duration(max(jitter, 0)) * time.Second
	r.boolean(&c.StopWhenOver, "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", false, "Count all descriptors of a request, or none when one of them is over.")
	r.integer(&c.DenyCacheBytes, "LOCAL_CACHE_SIZE_IN_BYTES", 0, 0, math.MaxInt, "Above 0, refusals are remembered here until their window ends, for strict rules too. It bounds the memory of that.")
	r.integer(&c.MaxKeys, "GALE_MAX_KEYS", 1_000_000, 1, 1_000_000_000, "Keys whose state is held here: counters of the memory store, credits of leased rules.")
	r.duration(&c.DeadlineMargin, "GALE_DEADLINE_MARGIN", 2*time.Millisecond, 0, "How long before a request's own deadline the store is given up.")
	r.text(&c.ReplicaID, "GALE_REPLICA_ID", "", "Name of this process among the replicas. Made up when empty; it must not be shared.")
}

func (r *reader) gale(s *Settings) {
	r.section = "End"
	r.duration(&s.Lifecycle.DrainTimeout, "GALE_DRAIN_TIMEOUT", 20*time.Second, 0,
		"Time that requests under way, the return of credits and the last flush have after SIGTERM.")
}

// withoutMeaning declares what envoyproxy/ratelimit reads and gale-rls has no
// use for.
func (r *reader) withoutMeaning() {
	r.section = "Accepted, without effect"
	for _, v := range []string{"ENABLED", "EXPORTER_PROTOCOL", "SERVICE_NAME", "SERVICE_NAMESPACE", "SERVICE_INSTANCE_ID", "SAMPLING_RATE"} {
		r.noEffect("TRACING_"+v, "tracing is not supported yet.")
	}
	for _, v := range []string{"HOST_PORT", "SRV", "SRV_REFRESH", "MAX_IDLE_CONNS", "TLS", "TLS_CLIENT_CERT", "TLS_CLIENT_KEY", "TLS_CACERT", "TLS_SKIP_HOSTNAME_VERIFICATION"} {
		r.noEffect("MEMCACHE_"+v, "memcached is not supported.")
	}
	for _, v := range []string{
		"CONFIG_GRPC_XDS_NODE_ID", "CONFIG_GRPC_XDS_NODE_METADATA", "CONFIG_GRPC_XDS_SERVER_URL",
		"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "CONFIG_GRPC_XDS_SERVER_TLS_SAN", "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL",
		"XDS_CLIENT_BACKOFF_MAX_INTERVAL", "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", "XDS_CLIENT_BACKOFF_JITTER",
		"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES",
	} {
		r.noEffect(v, "rules come from files only; xDS is not supported yet.")
	}
	r.noEffect("GOSTATS_FLUSH_INTERVAL_SECONDS", "STATS_FLUSH_INTERVAL is the interval, as in envoyproxy/ratelimit.")
	r.noEffect("GOSTATS_LOGGING_SINK_DISABLED", "DISABLE_STATS turns statistics off.")
}
