package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gale-rls/gale-rls/internal/testenv"
	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/redisstore"
)

func TestBadSettings(t *testing.T) {
	for name, c := range map[string]redisstore.Config{
		"no address":                     {},
		"missing port in address":        {Address: "localhost"},
		`port "http" is not a number`:    {Address: "localhost:http"},
		"is neither tcp nor unix":        {Address: "localhost:1", Network: "udp"},
		"neither redis nor rediss":       {Address: "http://localhost:1"},
		`database "one" is not a number`: {Address: "redis://localhost:1/one"},
		"pool size is negative":          {Address: "localhost:1", PoolSize: -1},
		"database is negative":           {Address: "redis://localhost:1/-3"},
		"not a URL":                      {Address: "redis://user:secret@local host:1"},
	} {
		s, err := redisstore.New(c)
		if err == nil {
			_ = s.Close()
			t.Errorf("no error for %+v", c)
			continue
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not say %q", err, name)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("error shows the password: %v", err)
		}
	}
	_, err := redisstore.New(redisstore.Config{PoolSize: -1, Timeout: -1})
	for _, want := range []string{"no address", "pool size", "timeout"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say all: %s", err, want)
		}
	}
}

func TestPasswordsUsersAndDatabases(t *testing.T) {
	server := testenv.Redis(t, "--requirepass", "secret")
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, Password: "secret"})
	defer admin.Close()
	if err := admin.ACLSetUser(t.Context(), "alice", "on", ">wonder:land", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]redisstore.Config{
		"password":     {Address: server.Addr, Auth: "secret", DB: 3},
		"user":         {Address: server.Addr, Auth: "alice:wonder:land", DB: 3},
		"URL":          {Address: "redis://:secret@" + server.Addr + "/3"},
		"URL, user":    {Address: "redis://alice:wonder%3Aland@" + server.Addr + "/3"},
		"URL, query":   {Address: "redis://" + server.Addr + "?username=alice&password=wonder:land&db=3"},
		"URL and Auth": {Address: "redis://:wrong@" + server.Addr + "/3", Auth: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c)
			key := strings.ReplaceAll(name, " ", "-")
			count(t, s, gale.CountStep{Key: key, Hits: 2, TTL: 60})
			look := open(t, redisstore.Config{Address: server.Addr, Auth: "secret", DB: 3})
			if got := count(t, look, gale.CountStep{Key: key, TTL: 60})[0].After; got != 2 {
				t.Errorf("counter in database 3 is %d", got)
			}
		})
	}
	t.Run("wrong", func(t *testing.T) {
		s, err := redisstore.New(redisstore.Config{Address: server.Addr, Auth: "guess"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		testenv.Eventually(t, 5*time.Second, "the reason", func() bool {
			err := s.Ready()
			return errors.Is(err, gale.ErrUnavailable) && strings.Contains(err.Error(), "WRONGPASS")
		})
		err = s.Count(t.Context(), steps(1, "wrong"))
		if !errors.Is(err, gale.ErrUnavailable) || strings.Contains(err.Error(), "guess") {
			t.Errorf("Count: %v", err)
		}
	})
}

func TestTLS(t *testing.T) {
	server := testenv.Redis(t)
	files := t.TempDir()
	authority, pair := certificate(t, "elsewhere.test")
	authorities := filepath.Join(files, "ca.pem")
	if err := os.WriteFile(authorities, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	front := tlsFront(t, server.Addr, pair)

	skip, err := redisstore.TLSFiles{Authorities: authorities, SkipHostname: true}.Config()
	if err != nil {
		t.Fatal(err)
	}
	count(t, open(t, redisstore.Config{Address: front, TLS: skip}), steps(1, "tls")...)
	count(t, open(t, redisstore.Config{Address: "rediss://" + front, TLS: skip}), steps(1, "tls")...)

	trusting, err := redisstore.TLSFiles{Authorities: authorities}.Config()
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := redisstore.TLSFiles{SkipHostname: true}.Config()
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]redisstore.Config{
		"127.0.0.1":         {Address: front, TLS: trusting}, // not in the certificate
		"unknown authority": {Address: front, TLS: nobody},
		"tls: ":             {Address: "rediss://" + front},
	} {
		s, err := redisstore.New(c)
		if err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 5*time.Second, want, func() bool {
			return s.Ready() != nil && strings.Contains(s.Ready().Error(), want)
		})
		_ = s.Close()
	}

	for name, f := range map[string]redisstore.TLSFiles{
		"nowhere.pem": {Authorities: filepath.Join(files, "nowhere.pem")},
		"cert.pem":    {Certificate: filepath.Join(files, "cert.pem"), Key: "key.pem"},
	} {
		if _, err := f.Config(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certificate makes a certificate for host, which is its own authority.
func certificate(t *testing.T, host string) (authority []byte, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return authority, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// tlsFront is a TLS listener before a server in the clear.
func tlsFront(t *testing.T, target string, pair tls.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go forward(in, target)
		}
	}()
	return l.Addr().String()
}

func forward(in net.Conn, target string) {
	defer in.Close()
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer out.Close()
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
}
