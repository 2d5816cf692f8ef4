package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dialer opens connections and counts them.
type dialer struct {
	open    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config // nil: in the clear
	network string
	address string

	opened, closed atomic.Int64
}

func newDialer(s *settings) *dialer {
	d := &dialer{open: s.Dialer, tls: s.TLS, network: s.Network, address: s.Address}
	if d.open == nil {
		netDialer := &net.Dialer{KeepAlive: 15 * time.Second}
		d.open = netDialer.DialContext
	}
	return d
}

// dial is redis.Options.Dialer.
func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := d.open(ctx, d.network, d.address)
	if err != nil {
		return nil, err
	}
	if d.tls != nil {
		secure := tls.Client(conn, d.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // the handshake's error is the one to tell
			return nil, fmt.Errorf("TLS: %w", err)
		}
		conn = secure
	}
	d.opened.Add(1)
	counted := &countedConn{Conn: conn, dialer: d}
	// The driver looks for bytes of a dead connection before it uses one, if
	// it can.
	if raw, ok := conn.(syscall.Conn); ok {
		return &countedRawConn{countedConn: counted, raw: raw}, nil
	}
	return counted, nil
}

// countedConn counts its closing.
type countedConn struct {
	net.Conn
	dialer *dialer
	once   sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.dialer.closed.Add(1) })
	return c.Conn.Close()
}

type countedRawConn struct {
	*countedConn
	raw syscall.Conn
}

func (c *countedRawConn) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }
