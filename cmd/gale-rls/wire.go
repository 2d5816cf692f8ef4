package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"

	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/rls"
)

// app is everything that serve runs.
type app struct {
	settings settings.Settings
	log      *slog.Logger

	registry *stats.Registry
	sink     stats.Sink

	stores    []gale.Store
	storeName string // for people; without credentials
	engine    *gale.Engine
	wasReady  bool // the store could be asked once; owned by watchStore

	service *rls.Service
	health  *rls.Health
	loader  *ruleLoader

	grpc  *grpc.Server
	certs *certificates // nil without TLS
	http  []door        // the plain HTTP doors
}

// wire constructs everything, and opens nothing.
func wire(s settings.Settings, log *slog.Logger) (*app, error) {
	a := &app{settings: s, log: log}
	a.registry = stats.New(stats.Options{ExtraTags: s.Stats.ExtraTags, MaxSeries: s.Stats.MaxSeries})
	stats.WatchProcess(a.registry)

	source, err := openRules(s.Source, log)
	if err != nil {
		return nil, err
	}
	if err := a.openStores(); err != nil {
		return nil, err
	}
	a.engine, err = gale.NewEngine(a.stores[0], a.perSecondStore(), engineConfig(s, log))
	if err != nil {
		return nil, err
	}
	a.watchEngine()
	a.service = rls.NewService(a.engine, a.registry, doorConfig(s))
	a.health = rls.NewHealth(s.Source.HealthNeedsDomain)
	a.loader = &ruleLoader{
		source: source, service: a.service, health: a.health, log: log,
		options: descriptors.Options{MergeDomains: s.Source.MergeDomains, DefaultMode: descriptors.Mode(s.Source.DefaultMode)},
		good:    a.registry.Counter("ratelimit.service.config_load_success"),
		bad:     a.registry.Counter("ratelimit.service.config_load_error"),
		files:   newFileStats(a.registry),
	}
	metrics, err := newMetrics(a)
	if err != nil {
		return nil, err
	}
	if a.sink, err = newSink(s.Stats, metrics, log); err != nil {
		return nil, err
	}
	return a, a.wireDoors(metrics)
}

func engineConfig(s settings.Settings, log *slog.Logger) gale.Config {
	c := s.Counting
	if c.ReplicaID == "" {
		host, _ := os.Hostname() // "" is as good: the rest makes it unique
		c.ReplicaID = host + "-" + strconv.Itoa(os.Getpid()) + "-" + randomID()
	}
	return gale.Config{
		StopWhenOver:       c.StopWhenOver,
		DenyCacheForStrict: c.DenyCacheBytes > 0,
		DenyCacheKeys:      denyCacheKeys(c.DenyCacheBytes),
		ExpirationJitter:   c.ExpirationJitter,
		DeadlineMargin:     c.DeadlineMargin,
		OpTimeout:          c.OpTimeout,
		MaxKeys:            min(c.MaxKeys, gale.DefaultMaxKeys),
		MaxLeasedKeys:      c.MaxKeys,
		ReplicaID:          c.ReplicaID,
		Log:                log,
	}
}

const (
	// leastCacheBytes is what any smaller LOCAL_CACHE_SIZE_IN_BYTES means, as
	// in envoyproxy/ratelimit.
	leastCacheBytes = 512 << 10
	// denyCacheEntryBytes is what a remembered refusal costs, its key included.
	denyCacheEntryBytes = 150
)

// denyCacheKeys is how many refusals fit into so many bytes; 0 is the engine's
// default.
func denyCacheKeys(bytes int) int {
	if bytes <= 0 {
		return 0
	}
	return max(bytes, leastCacheBytes) / denyCacheEntryBytes
}

func doorConfig(s settings.Settings) rls.Config {
	a := s.Answers
	return rls.Config{
		KeyPrefix:       s.Counting.KeyPrefix,
		NearLimitRatio:  s.Counting.NearLimitRatio,
		ShadowMode:      a.ShadowMode,
		QuotaMode:       a.QuotaMode,
		DynamicMetadata: a.DynamicMetadata,
		HeadersEnabled:  a.Headers,
		HeaderLimit:     a.HeaderLimit,
		HeaderRemaining: a.HeaderRemaining,
		HeaderReset:     a.HeaderReset,
		IETFHeaders:     a.IETFHeaders,
		MaxDescriptors:  a.MaxDescriptors,
	}
}

// wireDoors makes the servers.
func (a *app) wireDoors(m *metrics) error {
	s := a.settings
	c := rls.ServerConfig{
		MaxMessageBytes:       s.GRPC.MaxMessageBytes,
		MaxConcurrentStreams:  uint32(s.GRPC.MaxStreams),
		MaxConnectionAge:      s.GRPC.MaxConnectionAge,
		MaxConnectionAgeGrace: s.GRPC.MaxConnectionAgeEnd,
	}
	if s.GRPC.TLS {
		certs, err := newCertificates(s.GRPC, a.registry, a.log)
		if err != nil {
			return err
		}
		a.certs, c.Credentials = certs, certs.credentials()
	}
	a.grpc = rls.NewGRPCServer(a.service, a.health, a.registry, c)
	pages := []rls.Page{
		{Path: "/metrics", About: "metrics for Prometheus", Handler: m.handler()},
		{Path: "/leases", About: "the hottest leased keys, with their credits, windows and rates", Handler: rls.TextPage(a.engine.WriteLeases)},
	}
	a.http = []door{
		newDoor("debug", s.Debug, rls.NewDebugHandler(a.service, a.registry, pages...)),
		newDoor("HTTP", s.HTTP, rls.NewHTTPHandler(a.service, a.health, int64(s.GRPC.MaxMessageBytes))),
	}
	if s.Stats.Sink == settings.SinkPrometheus {
		mux := http.NewServeMux()
		mux.Handle(s.Stats.Prometheus.Path, m.handler())
		d := newDoor("Prometheus", settings.Listener{}, mux)
		d.address = s.Stats.Prometheus.Address
		a.http = append(a.http, d)
	}
	return nil
}

// newSink makes the one sink that was chosen. The metrics take in everything
// when they are it.
func newSink(s settings.Stats, m *metrics, log *slog.Logger) (stats.Sink, error) {
	address := listenAddress(s.Statsd)
	switch s.Sink {
	case settings.SinkStatsd:
		return stats.NewStatsd(stats.StatsdConfig{Network: s.Protocol, Address: address, ExtraTags: s.ExtraTags, Log: log}), nil
	case settings.SinkDogStatsd:
		c := stats.DogStatsdConfig{Address: address, ExtraTags: s.ExtraTags, Log: log}
		for _, g := range s.Mogrifiers {
			pattern, err := regexp.Compile(g.Pattern)
			if err != nil {
				return nil, fmt.Errorf("DOG_STATSD_MOGRIFIER pattern: %w", err)
			}
			c.Mogrifiers = append(c.Mogrifiers, stats.Mogrifier{Pattern: pattern, Name: g.Name, Tags: g.Tags})
		}
		return stats.NewDogStatsd(c), nil
	case settings.SinkPrometheus:
		return m.sink(s, log)
	case settings.SinkJSON:
		return stats.NewJSONLines(os.Stderr, s.ExtraTags), nil
	default:
		return stats.Discard(), nil
	}
}
