package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/credentials"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
)

// certificates is the key pair of the gRPC door, which follows its files, and
// what is asked of clients.
type certificates struct {
	files    settings.GRPC
	log      *slog.Logger
	attempts *stats.Counter
	failures *stats.Counter

	pair    atomic.Pointer[tls.Certificate]
	clients *x509.CertPool // nil: clients need no certificate
	watch   *fsnotify.Watcher
	done    chan struct{}
}

// newCertificates loads the pair, and begins to watch its directory.
func newCertificates(g settings.GRPC, r *stats.Registry, log *slog.Logger) (*certificates, error) {
	c := &certificates{
		files: g, log: log, done: make(chan struct{}),
		attempts: r.Counter("certs.load_attempts"), failures: r.Counter("certs.load_failures"),
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("%w; correct GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY", err)
	}
	if g.ClientCAFile != "" {
		pool, err := withSystemPool(g.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("GRPC_CLIENT_TLS_CACERT=%q: %w", g.ClientCAFile, err)
		}
		c.clients = pool
	}
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be watched: %w", err)
	}
	if err := watch.Add(filepath.Dir(g.CertFile)); err != nil {
		_ = watch.Close() // the reason is err
		return nil, fmt.Errorf("the certificate cannot be watched: %w", err)
	}
	c.watch = watch
	go c.follow()
	return c, nil
}

// withSystemPool returns the CAs of the system and those in file.
func withSystemPool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // none on this system
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return pool, nil
}

func (c *certificates) load() error {
	c.attempts.Add(1)
	pair, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		c.failures.Add(1)
		return fmt.Errorf("failed to load TLS key pair (%s,%s): %w", c.files.CertFile, c.files.KeyFile, err)
	}
	c.pair.Store(&pair)
	return nil
}

// certQuiet is how long a directory must be quiet: certificate and key are
// written one after the other.
const certQuiet = 100 * time.Millisecond

// follow loads the pair after each change in its directory. A pair that does
// not load keeps the old one.
func (c *certificates) follow() {
	defer close(c.done)
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	for {
		select {
		case e, ok := <-c.watch.Events:
			if !ok {
				return
			}
			// Kubernetes swaps "..data"; other dot files are editors'.
			base := filepath.Base(e.Name)
			if strings.HasPrefix(base, ".") && !strings.HasPrefix(base, "..") {
				continue
			}
			quiet.Reset(certQuiet)
		case err, ok := <-c.watch.Errors:
			if !ok {
				return
			}
			c.log.Warn("Watching the certificate", "error", err)
		case <-quiet.C:
			if err := c.load(); err != nil {
				c.log.Error("The old certificate stays: " + err.Error())
				continue
			}
			c.log.Info("Loaded the certificate", "file", c.files.CertFile)
		}
	}
}

func (c *certificates) close() {
	_ = c.watch.Close() // nothing was written
	<-c.done
}

// credentials are what the gRPC server is given.
func (c *certificates) credentials() credentials.TransportCredentials {
	t := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil },
	}
	if c.clients != nil {
		t.ClientCAs, t.ClientAuth = c.clients, tls.RequireAndVerifyClientCert
		if name := c.files.ClientSAN; name != "" {
			t.VerifyConnection = func(s tls.ConnectionState) error { return c.verifyName(s, name) }
		}
	}
	return credentials.NewTLS(t)
}

// verifyName demands that the client's certificate carries a name.
func (c *certificates) verifyName(s tls.ConnectionState, name string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the client has no certificate")
	}
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: c.clients, Intermediates: between, DNSName: name,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
