package settings

import (
	"math"
	"path/filepath"
	"strings"
	"time"
)

func (r *reader) doors(s *Settings) {
	r.section = "Doors"
	r.text(&s.GRPC.Host, "GRPC_HOST", "0.0.0.0", "Address of the gRPC door. `::` listens on IPv6 and IPv4.")
	r.port(&s.GRPC.Port, "GRPC_PORT", 8081, "Port of the gRPC door; 0 takes a free one and logs it.")
	r.text(&s.GRPC.Socket, "GRPC_UDS", "", "Unix socket to listen on instead of the port. A stale socket file is replaced.")
	r.duration(&s.GRPC.MaxConnectionAge, "GRPC_MAX_CONNECTION_AGE", 24*time.Hour, 0,
		"Age at which a connection is asked to end, so that clients spread over the replicas; 0 is never.")
	r.duration(&s.GRPC.MaxConnectionAgeEnd, "GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour, 0,
		"Time that calls still have after that; 0 is without end.")
	r.integer(&s.GRPC.MaxStreams, "GALE_GRPC_MAX_STREAMS", 10000, 1, math.MaxInt32,
		"Calls under way on one connection; further ones wait at the client.")
	r.integer(&s.GRPC.MaxMessageBytes, "GALE_GRPC_MAX_MESSAGE_BYTES", 4<<20, 1<<10, math.MaxInt32,
		"Size of the largest request, over gRPC and `/json`.")
	r.text(&s.HTTP.Host, "HOST", "0.0.0.0", "Address of the HTTP door (`/json`, `/healthcheck`).")
	r.port(&s.HTTP.Port, "PORT", 8080, "Port of the HTTP door.")
	r.text(&s.Debug.Host, "DEBUG_HOST", "0.0.0.0",
		"Address of the debug port. It shows rules and profiles: `127.0.0.1` keeps it to the machine.")
	r.port(&s.Debug.Port, "DEBUG_PORT", 6070, "Port of the debug pages (`/rlconfig`, `/stats`, `/debug/pprof/`).")
}

func (r *reader) serverTLS(s *Settings) {
	r.section = "TLS of the gRPC door"
	g := &s.GRPC
	r.boolean(&g.TLS, "GRPC_SERVER_USE_TLS", false, "Serve TLS.")
	r.text(&g.CertFile, "GRPC_SERVER_TLS_CERT", "", "Certificate chain, PEM. Read again when its directory changes; a pair that does not load keeps the old one.")
	r.text(&g.KeyFile, "GRPC_SERVER_TLS_KEY", "", "Private key, PEM.")
	r.text(&g.ClientCAFile, "GRPC_CLIENT_TLS_CACERT", "", "CA, PEM. Clients must then present a certificate that it (or the system) vouches for.")
	r.text(&g.ClientSAN, "GRPC_CLIENT_TLS_SAN", "", "DNS name that client certificates must carry.")
	r.noEffect("GRPC_SERVER_TLS_CA_CERT", "Envoy Gateway sets it, and envoyproxy/ratelimit does not read it either; GRPC_CLIENT_TLS_CACERT is the CA for clients.")
	if g.TLS {
		for name, file := range map[string]string{"GRPC_SERVER_TLS_CERT": g.CertFile, "GRPC_SERVER_TLS_KEY": g.KeyFile} {
			if file == "" {
				r.problem(name, "is not set, and GRPC_SERVER_USE_TLS is true", "name the PEM file, or set GRPC_SERVER_USE_TLS=false")
			}
		}
		if g.CertFile != "" && g.KeyFile != "" && filepath.Dir(g.CertFile) != filepath.Dir(g.KeyFile) {
			r.problem("GRPC_SERVER_TLS_KEY", "is in another directory than GRPC_SERVER_TLS_CERT ("+g.CertFile+")",
				"certFile and keyFile must be in the same directory: move one of them")
		}
	} else if g.CertFile != "" || g.KeyFile != "" || g.ClientCAFile != "" {
		r.notice("GRPC_SERVER_USE_TLS is not true: the gRPC door is plain text, and the certificate settings have no effect")
	}
	if g.ClientSAN != "" && g.ClientCAFile == "" {
		r.notice("GRPC_CLIENT_TLS_SAN has no effect without GRPC_CLIENT_TLS_CACERT: clients need no certificate")
	}
}

// logLevels are the levels of LOG_LEVEL, most severe first. panic and fatal are
// error here, trace is debug.
var logLevels = []string{"panic", "fatal", "error", "warn", "warning", "info", "debug", "trace"}

func (r *reader) logging(s *Settings) {
	r.section = "Log"
	r.choice(&s.Log.Level, "LOG_LEVEL", "warn", logLevels, "Least severe level that is logged, to the standard error output.")
	var format string
	r.choice(&format, "LOG_FORMAT", "text", []string{"text", "json"}, "`json` logs objects with `@timestamp`, `level` and `@message`.")
	s.Log.JSON = format == "json"
}

func (r *reader) source(s *Settings) {
	r.section = "Rules"
	var kind string
	r.choice(&kind, "CONFIG_TYPE", "FILE", []string{"FILE", "GRPC_XDS_SOTW"}, "Where rules come from. `GRPC_XDS_SOTW` is not supported yet.")
	if kind == "GRPC_XDS_SOTW" {
		r.problem("CONFIG_TYPE", "is not supported yet: rules come from files only", "set CONFIG_TYPE=FILE and mount the rules below RUNTIME_ROOT")
	}
	f := &s.Source
	r.required(&f.Root, "RUNTIME_ROOT", "/srv/runtime_data/current",
		"Folder of the rules, or the symbolic link that is swapped. If it is not set and the default does not exist, the shipped rules are used.")
	r.text(&f.Subdirectory, "RUNTIME_SUBDIRECTORY", "", "Folder below the root.")
	r.text(&f.AppDirectory, "RUNTIME_APPDIRECTORY", "config", "Folder below that; all files in it are rules.")
	r.boolean(&f.IgnoreDotFiles, "RUNTIME_IGNOREDOTFILES", false, "Skip files and folders whose name begins with a dot. Kubernetes ConfigMaps need it.")
	r.boolean(&f.WatchRoot, "RUNTIME_WATCH_ROOT", true, "Load again when the link RUNTIME_ROOT is swapped; `false`: when files in the folder change.")
	f.RootSet, f.SubdirectorySet = r.isSet("RUNTIME_ROOT"), r.isSet("RUNTIME_SUBDIRECTORY")
	r.boolean(&f.MergeDomains, "MERGE_DOMAIN_CONFIG", false, "Several files may have rules for one domain.")
	r.boolean(&f.ForceStart, "FORCE_START_WITHOUT_INITIAL_CONFIG", false, "Open the doors before the first rules are loaded.")
	r.boolean(&f.HealthNeedsDomain, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", false, "Rules without any domain do not count as loaded.")
	r.choice(&f.DefaultMode, "GALE_DEFAULT_MODE", "strict", []string{"strict", "cached-deny", "leased"},
		"Mode of rules, and of limits in requests, that do not name one.")
}

func (r *reader) statistics(s *Settings) {
	r.section = "Statistics"
	st := &s.Stats
	var off, statsd, dog, prom bool
	r.boolean(&off, "DISABLE_STATS", false, "Send statistics nowhere. Wins over the three below.")
	r.boolean(&statsd, "USE_STATSD", true, "Send statsd lines to STATSD_HOST:STATSD_PORT.")
	r.boolean(&dog, "USE_DOG_STATSD", false, "Send DogStatsD lines, over UDP. Needs USE_STATSD=false.")
	r.boolean(&prom, "USE_PROMETHEUS", false, "Serve Prometheus metrics. Needs USE_STATSD=false. With none of the three, statistics are JSON lines on the standard error output.")
	r.sink(st, off, [...]bool{statsd, dog, prom})
	r.text(&st.Statsd.Host, "STATSD_HOST", "localhost", "Host of the statsd or DogStatsD server.")
	r.port(&st.Statsd.Port, "STATSD_PORT", 8125, "Its port.")
	r.choice(&st.Protocol, "STATSD_PROTOCOL", "tcp", []string{"tcp", "udp"}, "Protocol of statsd.")
	r.duration(&st.FlushInterval, "STATS_FLUSH_INTERVAL", 10*time.Second, time.Millisecond, "Time between two flushes.")
	r.pairs(&st.ExtraTags, "EXTRA_TAGS", "Tags of every statistic.")
	r.integer(&st.MaxSeries, "GALE_MAX_SERIES", 10000, 1, 10_000_000,
		"Names that callers can choose (overrides, values, unknown domains) and that are counted at a time, for rules and for others; the least recently used make room.")
	r.mogrifiers(st)
	p := &st.Prometheus
	r.required(&p.Address, "PROMETHEUS_ADDR", ":9090", "Address of the metrics port.")
	r.required(&p.Path, "PROMETHEUS_PATH", "/metrics", "Path of the metrics.")
	if !strings.HasPrefix(p.Path, "/") {
		r.problem("PROMETHEUS_PATH", "is not a path", "begin it with /, as in /metrics")
	}
	r.text(&p.MapperFile, "PROMETHEUS_MAPPER_YAML", "", "statsd_exporter mapping file to use instead of the built-in one.")
	r.boolean(&p.Milliseconds, "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", false, "Keep response times in milliseconds, in the built-in mapping.")
}

// sink chooses the one sink; on are statsd, DogStatsD and Prometheus.
func (r *reader) sink(st *Stats, off bool, on [3]bool) {
	names := [...]string{"USE_STATSD", "USE_DOG_STATSD", "USE_PROMETHEUS"}
	sinks := [...]string{SinkStatsd, SinkDogStatsd, SinkPrometheus}
	var chosen []string
	st.Sink = SinkJSON
	for i, is := range on {
		if is {
			chosen = append(chosen, names[i])
			st.Sink = sinks[i]
		}
	}
	if off {
		st.Sink = SinkNone
		return
	}
	if len(chosen) > 1 {
		last := chosen[len(chosen)-1]
		r.problems = append(r.problems, &Problem{Name: last, Value: "true",
			Why:    "is more than one stats sink at the same time (" + strings.Join(chosen, ", ") + "; USE_STATSD is true unless set)",
			WayOut: "keep one of USE_DOG_STATSD, USE_STATSD, USE_PROMETHEUS and set the others to false"})
	}
}

func (r *reader) mogrifiers(st *Stats) {
	var names []string
	r.list(&names, "USE_DOG_STATSD_MOGRIFIERS", "Names N of the rewritings below; the first whose pattern matches a statistic is applied.")
	r.vars = append(r.vars,
		Variable{Name: "DOG_STATSD_MOGRIFIER_<N>_PATTERN", Section: r.section, Type: "regular expression", Doc: "Statistics that N rewrites."},
		Variable{Name: "DOG_STATSD_MOGRIFIER_<N>_NAME", Section: r.section, Type: "text", Doc: "Their new name; `$1` is the first group of the pattern."},
		Variable{Name: "DOG_STATSD_MOGRIFIER_<N>_TAGS", Section: r.section, Type: "list: k:v,k:v", Doc: "Tags that they get; values may have `$1` too."})
	documented := len(r.vars)
	for _, n := range names {
		var m Mogrifier
		prefix := "DOG_STATSD_MOGRIFIER_" + n
		r.text(&m.Pattern, prefix+"_PATTERN", "", "")
		r.text(&m.Name, prefix+"_NAME", "", "")
		r.pairs(&m.Tags, prefix+"_TAGS", "")
		r.checkMogrifier(prefix, m)
		st.Mogrifiers = append(st.Mogrifiers, m)
	}
	for i := documented; i < len(r.vars); i++ {
		r.vars[i].Section = "" // known, and documented above
	}
}
