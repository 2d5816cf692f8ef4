package testenv

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server, and makes faults on the way.
// A new Proxy is transparent.
type Proxy struct {
	// Addr is the host:port to connect to.
	Addr string

	target string
	trips  atomic.Int64
	delay  atomic.Int64 // time.Duration of each reply
	lose   atomic.Int64 // replies lost, per million
	cut    atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// NewProxy starts a proxy to target (host:port).
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[net.Conn]struct{}{}}
	var done sync.WaitGroup
	done.Go(func() { p.accept(l, &done) })
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		done.Wait()
	})
	return p
}

// Delay holds each reply back for d; replies keep their order, and the next
// ones do not wait for each other (a longer wire, not a slower server).
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// LoseReplies loses that share of the replies, 0 to 1: the server did the
// work, and its client never hears of it. A connection is silent from its
// first lost reply on, for the protocols behind it do not number replies.
func (p *Proxy) LoseReplies(share float64) { p.lose.Store(int64(share * 1e6)) }

// Cut closes all connections, and those that come, until Mend.
func (p *Proxy) Cut() {
	p.cut.Store(true)
	p.CloseAll()
}

// Mend ends Cut.
func (p *Proxy) Mend() { p.cut.Store(false) }

// CloseAll closes the connections of the moment; new ones are forwarded.
func (p *Proxy) CloseAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// RoundTrips is the number of times a client waited for the server so far:
// a run of bytes to the server, followed by a run of bytes back, is one,
// however many commands it carries.
func (p *Proxy) RoundTrips() int64 { return p.trips.Load() }

func (p *Proxy) accept(l net.Listener, done *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if p.cut.Load() {
			_ = c.Close()
			continue
		}
		done.Go(func() { p.serve(c) })
	}
}

// serve forwards one connection until either side ends it.
func (p *Proxy) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	p.track(client, server)
	defer p.forget(client, server)

	// asking is true from the first byte to the server until its first
	// byte back.
	var asking atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		forward(client, func(b []byte) error {
			if asking.CompareAndSwap(false, true) {
				p.trips.Add(1)
			}
			_, err := server.Write(b)
			return err
		})
		_ = server.Close()
	})
	both.Go(func() {
		p.replies(server, client, &asking)
		_ = client.Close()
	})
	both.Wait()
}

// reply is some bytes of the server, and when they are due at the client.
type reply struct {
	bytes []byte
	due   time.Time
}

// replies forwards what the server says, late or not at all.
func (p *Proxy) replies(server, client net.Conn, asking *atomic.Bool) {
	// So many replies may be on the wire; more make the server wait, as a
	// full wire would.
	wire := make(chan reply, 4096)
	var late sync.WaitGroup
	late.Go(func() {
		for r := range wire {
			time.Sleep(time.Until(r.due))
			if _, err := client.Write(r.bytes); err != nil {
				_ = server.Close()
			}
		}
	})
	silent := false
	forward(server, func(b []byte) error {
		asking.Store(false)
		if silent = silent || rand.Int64N(1e6) < p.lose.Load(); silent {
			return nil
		}
		due := time.Now().Add(time.Duration(p.delay.Load()))
		wire <- reply{append([]byte(nil), b...), due}
		return nil
	})
	close(wire)
	late.Wait()
}

// forward hands to f what comes from c, until its end.
func forward(c net.Conn, f func([]byte) error) {
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		if n > 0 {
			if err := f(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// track notes connections for Cut, and closes them if it came first.
func (p *Proxy) track(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
		if p.cut.Load() {
			_ = c.Close()
		}
	}
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}
