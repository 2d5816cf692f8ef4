package settings

import (
	"errors"
	"time"
)

// Settings is the environment as data, grouped by concern. All fields are
// filled: what was not set has its default.
type Settings struct {
	GRPC      GRPC
	HTTP      Listener
	Debug     Listener
	Log       Log
	Source    Source
	Stats     Stats
	Answers   Answers
	Counting  Counting
	Store     string // StoreMemory or StoreRedis
	Redis     Redis
	Lifecycle Lifecycle
}

// The stores that Settings.Store names.
const (
	StoreMemory = "memory"
	StoreRedis  = "redis"
)

// Listener is where a port listens. Port 0 lets the system choose.
type Listener struct {
	Host string
	Port int
}

// GRPC is the gRPC door.
type GRPC struct {
	Listener
	// Socket is a path of a unix socket to listen on instead.
	Socket                                string
	MaxConnectionAge, MaxConnectionAgeEnd time.Duration
	MaxStreams, MaxMessageBytes           int
	TLS                                   bool
	// CertFile and KeyFile are read again when they change.
	CertFile, KeyFile string
	// ClientCAFile demands and verifies client certificates; ClientSAN, if
	// not empty, must be a name of theirs.
	ClientCAFile, ClientSAN string
}

// Log is what is logged, to the standard error output.
type Log struct {
	Level string // panic, fatal, error, warn, warning, info, debug or trace
	JSON  bool
}

// Source is where rules come from.
type Source struct {
	Root, Subdirectory, AppDirectory string
	// RootSet and SubdirectorySet say that the operator chose them.
	RootSet, SubdirectorySet  bool
	IgnoreDotFiles, WatchRoot bool
	MergeDomains              bool
	DefaultMode               string
	// ForceStart opens the doors before the first rules are loaded.
	ForceStart bool
	// HealthNeedsDomain is HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED.
	HealthNeedsDomain bool
}

// The sinks that Stats.Sink names.
const (
	SinkNone       = "none"
	SinkStatsd     = "statsd"
	SinkDogStatsd  = "dogstatsd"
	SinkPrometheus = "prometheus"
	SinkJSON       = "json"
)

// Stats is where counts go.
type Stats struct {
	Sink          string
	Protocol      string // of statsd: tcp or udp
	Statsd        Listener
	FlushInterval time.Duration
	ExtraTags     map[string]string
	MaxSeries     int
	Mogrifiers    []Mogrifier
	Prometheus    Prometheus
}

// Mogrifier rewrites DogStatsD names; see stats.Mogrifier.
type Mogrifier struct {
	Pattern, Name string
	Tags          map[string]string
}

// Prometheus is the metrics port.
type Prometheus struct {
	Address, Path string
	MapperFile    string
	Milliseconds  bool
}

// Answers is what requests are answered.
type Answers struct {
	ShadowMode, QuotaMode, DynamicMetadata    bool
	Headers                                   bool
	HeaderLimit, HeaderRemaining, HeaderReset string
	IETFHeaders                               bool
	MaxDescriptors                            int
}

// Counting is how hits are counted.
type Counting struct {
	KeyPrefix        string
	NearLimitRatio   float32
	ExpirationJitter time.Duration
	StopWhenOver     bool
	// DenyCacheBytes above 0 gives strict rules the deny cache too.
	DenyCacheBytes int
	MaxKeys        int
	DeadlineMargin time.Duration
	// OpTimeout bounds each store operation; 0 is the engine's default.
	OpTimeout time.Duration
	// ReplicaID names this process to the others; "" is made up.
	ReplicaID string
}

// Redis is the shared store.
type Redis struct {
	Main, PerSecond RedisNode
	// UsePerSecond sends limits per second to PerSecond.
	UsePerSecond                       bool
	ClientCert, ClientKey, CACert      string
	SkipHostnameVerification           bool
	HealthFollowsConnections           bool
	RetryInitial, RetryMax, RetryUntil time.Duration
}

// RedisNode is one Redis.
type RedisNode struct {
	// Network is tcp or unix; URL is an address, a path, or redis://….
	Network, URL string
	Auth         string // password, or user:password
	TLS          bool
	PoolSize     int
	// Timeout bounds connecting, and each operation.
	Timeout time.Duration
	// PipelineWindow is how long is waited for more to send at once;
	// PipelineLimit bounds that, 0 is the store's default.
	PipelineWindow time.Duration
	PipelineLimit  int
}

// Lifecycle is start and end.
type Lifecycle struct {
	DrainTimeout time.Duration
}

// FromEnv reads "NAME=value" strings. The notices are for the start-up log. The
// error joins every *Problem.
func FromEnv(environ []string) (Settings, []string, error) {
	r := newReader(environ)
	s := r.read()
	r.unknown()
	return s, r.notices, errors.Join(r.problems...)
}

// read declares every variable, section by section, in the order of the docs.
func (r *reader) read() Settings {
	var s Settings
	r.doors(&s)
	r.serverTLS(&s)
	r.logging(&s)
	r.source(&s)
	r.statistics(&s)
	r.answers(&s)
	r.counting(&s)
	r.store(&s)
	r.gale(&s)
	r.withoutMeaning()
	return s
}
