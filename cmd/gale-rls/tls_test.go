package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/internal/testenv"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{next: 1}
	a.cert, a.key, a.pem, _ = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign fills a template in and signs it; an authority without a certificate
// signs itself.
func (a *authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.next++
	c.SerialNumber = big.NewInt(a.next)
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// write writes a pair for a name to dir, complete by rename, and returns the
// serial number.
func (a *authority) write(t *testing.T, dir, file, name string, use x509.ExtKeyUsage) int64 {
	t.Helper()
	cert, _, certPEM, keyPEM := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	})
	put(t, filepath.Join(dir, file+".crt"), certPEM)
	put(t, filepath.Join(dir, file+".key"), keyPEM)
	return cert.SerialNumber.Int64()
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestTLSOfTheDoor(t *testing.T) {
	ca, stranger, dir := newAuthority(t), newAuthority(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	put(t, file("ca.pem"), ca.pem)
	first := ca.write(t, dir, "server", "localhost", x509.ExtKeyUsageServerAuth)
	ca.write(t, dir, "client", "envoy.example", x509.ExtKeyUsageClientAuth)
	ca.write(t, dir, "other", "other.example", x509.ExtKeyUsageClientAuth)
	ca.write(t, dir, "server-only", "envoy.example", x509.ExtKeyUsageServerAuth)
	stranger.write(t, dir, "stranger", "envoy.example", x509.ExtKeyUsageClientAuth)
	g := testenv.Gale(t, testenv.GaleOptions{Env: map[string]string{
		"GRPC_SERVER_USE_TLS": "true", "GRPC_SERVER_TLS_CERT": file("server.crt"), "GRPC_SERVER_TLS_KEY": file("server.key"),
		"GRPC_CLIENT_TLS_CACERT": file("ca.pem"), "GRPC_CLIENT_TLS_SAN": "envoy.example", "LOG_LEVEL": "info",
	}})
	asks := func(pair string) (int, string) {
		args := []string{"client", "-dial_string", g.GRPC, "-domain", "gale", "-descriptors", "hello=" + pair, "-grpc-use-tls", "-grpc-server-ca-file", file("ca.pem")}
		if pair != "" {
			args = append(args, "-grpc-cert-file", file(pair+".crt"), "-grpc-key-file", file(pair+".key"))
		}
		code, out, log := runs(args...)
		return code, out + log
	}
	for pair, want := range map[string]int{"client": 0, "other": 1, "server-only": 1, "stranger": 1, "": 1} {
		if code, out := asks(pair); code != want {
			t.Errorf("with the certificate %q: exit code %d, want %d\n%s", pair, code, want, out)
		}
	}

	if got := serial(t, g.GRPC, ca, dir); got != first {
		t.Errorf("the door shows certificate %d, want %d", got, first)
	}
	second := ca.write(t, dir, "server", "localhost", x509.ExtKeyUsageServerAuth)
	testenv.Eventually(t, patience, "the new certificate", func() bool { return serial(t, g.GRPC, ca, dir) == second })
	put(t, file("server.key"), []byte("no key"))
	testenv.Eventually(t, patience, "the log to complain", func() bool {
		return strings.Contains(g.Log(), "The old certificate stays: failed to load TLS key pair")
	})
	if got := serial(t, g.GRPC, ca, dir); got != second {
		t.Errorf("after a bad pair the door shows certificate %d, want %d", got, second)
	}
}

// serial is the serial number of the certificate that address shows.
func serial(t *testing.T, address string, ca *authority, dir string) int64 {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key"))
	if err != nil {
		t.Fatal(err)
	}
	d := tls.Dialer{Config: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestBadCertificateFilesAreNamed(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	ca.write(t, dir, "server", "localhost", x509.ExtKeyUsageServerAuth)
	g := settings.GRPC{TLS: true, CertFile: filepath.Join(dir, "server.crt"), KeyFile: filepath.Join(dir, "server.key")}
	put(t, filepath.Join(dir, "empty.pem"), nil)
	for _, c := range []struct{ ca, want string }{
		{filepath.Join(dir, "absent.pem"), "no such file"}, {filepath.Join(dir, "empty.pem"), "no certificate in PEM"},
	} {
		g.ClientCAFile = c.ca
		_, err := newCertificates(g, stats.New(stats.Options{}), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.ca) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "GRPC_CLIENT_TLS_CACERT") {
			t.Errorf("%s: %v", c.ca, err)
		}
	}
}
