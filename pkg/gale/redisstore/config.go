package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config says which server a Store is on, and how it is used. Address is
// required; other zero fields mean the default.
type Config struct {
	// Network is "tcp" or "unix"; empty: unix for an Address that begins with
	// a slash, else tcp.
	Network string
	// Address is host:port, the path of a unix socket, or a URL:
	// redis://[user[:password]@]host:port[/db][?username=&password=&db=], or
	// rediss:// for TLS.
	Address string
	// Auth is "password" or "user:password". It goes before what a URL says.
	Auth string
	// DB is the number of the database. It goes before what a URL says.
	DB int
	// TLS makes connections encrypted; see TLSFiles. An empty ServerName is
	// taken from the address.
	TLS *tls.Config
	// Dialer opens connections, for tests that watch them. Nil is the
	// network's own.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)

	// PoolSize is the number of connections that carry requests; one more
	// each is for probes and for replicated leases. 0 means 10.
	PoolSize int
	// Timeout bounds each operation, and connecting, which is given two
	// seconds at most. 0 means a second.
	Timeout time.Duration
	// PipelineWindow is how long a worker waits for more to send after the
	// first operation. 0 does not wait: what came meanwhile goes along.
	PipelineWindow time.Duration
	// PipelineLimit ends a pipeline after so many commands. 0 means 1024.
	PipelineLimit int
	// QueueSize bounds the operations that wait for a worker. 0 means 4096.
	QueueSize int
	// ReplicaTimeout bounds the wait for a replica's acknowledgement of a
	// replicated lease. 0 means 10 ms.
	ReplicaTimeout time.Duration
	// KeyPrefix stands before the names of keys that are ours alone: the set
	// of live replicas. Counters come with their prefix.
	KeyPrefix string
	// Log gets what an operator should see: a server that is gone, or back,
	// or may evict counters. Nil discards.
	Log *slog.Logger
}

const (
	defaultPoolSize       = 10
	defaultTimeout        = time.Second
	defaultPipelineLimit  = 1024
	defaultQueueSize      = 4096
	defaultReplicaTimeout = 10 * time.Millisecond
)

// settings is a checked Config with everything that the address says.
type settings struct {
	Config
	username, password string
	host               string // of a TCP address, for TLS
}

// check returns c with defaults, or all that is wrong with it.
func (c Config) check() (settings, error) {
	s := settings{Config: c}
	problems := []error{s.readAddress()}
	if c.Auth != "" {
		user, password, both := strings.Cut(c.Auth, ":")
		if both {
			s.username, s.password = user, password
		} else {
			s.username, s.password = "", c.Auth
		}
	}
	for _, number := range []struct {
		name  string
		value int64
	}{
		{"database", int64(s.DB)}, {"pool size", int64(c.PoolSize)}, {"timeout", int64(c.Timeout)},
		{"pipeline window", int64(c.PipelineWindow)}, {"pipeline limit", int64(c.PipelineLimit)},
		{"queue size", int64(c.QueueSize)}, {"replica timeout", int64(c.ReplicaTimeout)},
	} {
		if number.value < 0 {
			problems = append(problems, fmt.Errorf("redis: %s is negative", number.name))
		}
	}
	defaults(&s.PoolSize, defaultPoolSize)
	defaults(&s.Timeout, defaultTimeout)
	defaults(&s.PipelineLimit, defaultPipelineLimit)
	defaults(&s.QueueSize, defaultQueueSize)
	defaults(&s.ReplicaTimeout, defaultReplicaTimeout)
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.TLS != nil {
		s.TLS = s.TLS.Clone()
		if s.TLS.ServerName == "" {
			s.TLS.ServerName = s.host
		}
	}
	return s, errors.Join(problems...)
}

func defaults[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// readAddress takes Address apart.
func (s *settings) readAddress() error {
	if s.Address == "" {
		return errors.New("redis: no address")
	}
	if strings.Contains(s.Address, "://") {
		return s.readURL()
	}
	if s.Network == "" {
		s.Network = "tcp"
		if strings.HasPrefix(s.Address, "/") {
			s.Network = "unix"
		}
	}
	switch s.Network {
	case "unix":
		return nil
	case "tcp":
		return s.readHostPort()
	default:
		return fmt.Errorf("redis: network %q is neither tcp nor unix", s.Network)
	}
}

func (s *settings) readHostPort() error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("redis: address %q: %w; give host:port, the path of a unix socket, or redis://host:port", s.Address, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("redis: address %q: port %q is not a number from 1 to 65535", s.Address, port)
	}
	s.host = host
	return nil
}

// readURL reads a redis or rediss URL. Errors do not show its password.
func (s *settings) readURL() error {
	u, err := url.Parse(s.Address)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		return fmt.Errorf("redis: address is not a URL: %w", err)
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		if s.TLS == nil {
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	default:
		return fmt.Errorf("redis: address %q: scheme is neither redis nor rediss", u.Redacted())
	}
	query := u.Query()
	s.username = firstOf(query.Get("username"), u.User.Username())
	password, _ := u.User.Password()
	s.password = firstOf(query.Get("password"), password)
	if db := firstOf(query.Get("db"), strings.Trim(u.Path, "/")); db != "" && s.DB == 0 {
		if s.DB, err = strconv.Atoi(db); err != nil {
			return fmt.Errorf("redis: address: database %q is not a number", db)
		}
	}
	port := firstOf(u.Port(), "6379")
	s.Network, s.Address = "tcp", net.JoinHostPort(firstOf(u.Hostname(), "localhost"), port)
	return s.readHostPort()
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
