package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLSFiles is a TLS configuration as operators have it. The zero value
// trusts the system's authorities and shows no certificate.
type TLSFiles struct {
	// Certificate and Key are PEM files of what is shown to the server.
	Certificate, Key string
	// Authorities is a PEM file of further trusted authorities.
	Authorities string
	// SkipHostname accepts a certificate of another host, as long as it comes
	// from a trusted authority.
	SkipHostname bool
}

// Config reads the files.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.Certificate != "" || f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("redis: client certificate %q and key %q: %w", f.Certificate, f.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if f.Authorities != "" {
		pem, err := os.ReadFile(f.Authorities)
		if err != nil {
			return nil, fmt.Errorf("redis: authorities: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis: authorities: %q has no PEM certificate", f.Authorities)
		}
		c.RootCAs = pool
	}
	if f.SkipHostname {
		// The standard library checks chain and host together or neither, so
		// the chain is checked here.
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, c.RootCAs) }
	}
	return c, nil
}

func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("no certificate")
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(options)
	return err
}
