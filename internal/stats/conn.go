package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Bounds of a lineConn. They are those of the statistics library of
// envoyproxy/ratelimit, except for UDP, where a packet must fit an Ethernet
// frame.
const (
	queueBytes    = 4 << 20
	tcpChunkBytes = 64 << 10
	udpChunkBytes = 1432
	dialTimeout   = 2 * time.Second
	writeTimeout  = 5 * time.Second
	reconnectWait = 3 * time.Second
)

// lineConn sends lines over TCP or UDP, from a bounded queue, by a goroutine of
// its own. It reconnects for as long as it lives.
type lineConn struct {
	network, address string
	log              *slog.Logger
	chunkBytes       int
	dropped          atomic.Uint64 // lines

	queue  chan []byte
	closed chan struct{} // closed by close: send what is queued, then end
	abort  context.CancelFunc
	done   chan struct{}
	once   sync.Once

	// chunk is being filled; owned by the writer of lines.
	chunk []byte
}

func newLineConn(network, address string, log *slog.Logger) *lineConn {
	c := &lineConn{
		network: network, address: address, log: log, chunkBytes: tcpChunkBytes,
		closed: make(chan struct{}), done: make(chan struct{}),
	}
	if network == "udp" {
		c.chunkBytes = udpChunkBytes
	}
	c.queue = make(chan []byte, queueBytes/c.chunkBytes)
	ctx, abort := context.WithCancel(context.Background())
	c.abort = abort
	go c.run(ctx)
	return c
}

// line queues one line, which must end in a newline. Never blocks. A UDP line
// that is longer than a packet goes alone.
func (c *lineConn) line(b []byte) {
	if len(c.chunk) > 0 && len(c.chunk)+len(b) > c.chunkBytes {
		c.flush()
	}
	c.chunk = append(c.chunk, b...)
}

// flush queues the lines so far, or drops them when the queue is full.
func (c *lineConn) flush() {
	if len(c.chunk) == 0 {
		return
	}
	select {
	case c.queue <- bytes.Clone(c.chunk):
	default:
		c.dropped.Add(uint64(bytes.Count(c.chunk, []byte{'\n'})))
	}
	c.chunk = c.chunk[:0]
}

// close sends what is queued, until ctx ends.
func (c *lineConn) close(ctx context.Context) error {
	c.flush()
	c.once.Do(func() { close(c.closed) })
	defer c.abort()
	select {
	case <-c.done:
	case <-ctx.Done():
		c.abort()
		<-c.done
	}
	if left := len(c.queue); left > 0 {
		return fmt.Errorf("statistics sink %s %s: the last %d KiB were not sent", c.network, c.address, left*c.chunkBytes/1024)
	}
	return nil
}

func (c *lineConn) run(ctx context.Context) {
	defer close(c.done)
	link := link{lineConn: c}
	defer func() { _ = link.drop() }()
	for {
		select {
		case chunk := <-c.queue:
			link.send(ctx, chunk)
			continue
		case <-ctx.Done():
			return
		case <-c.closed:
		}
		for len(c.queue) > 0 && ctx.Err() == nil {
			if !link.trySend(ctx, <-c.queue) {
				return // the process is ending: one attempt
			}
		}
		return
	}
}

// link is the connection of a lineConn, made when there is something to send.
type link struct {
	*lineConn
	conn net.Conn
	down bool // said so in the log
}

// send repeats until the chunk is sent, or the lineConn closes or is aborted.
func (l *link) send(ctx context.Context, chunk []byte) {
	for {
		rest, err := l.attempt(ctx, chunk)
		if err == nil {
			return
		}
		chunk = rest
		select {
		case <-ctx.Done():
			return
		case <-l.closed:
			l.trySend(ctx, chunk)
			return
		case <-time.After(reconnectWait):
		}
	}
}

func (l *link) trySend(ctx context.Context, chunk []byte) bool {
	_, err := l.attempt(ctx, chunk)
	return err == nil
}

// attempt returns what is still to be sent.
func (l *link) attempt(ctx context.Context, chunk []byte) ([]byte, error) {
	rest, err := l.write(ctx, chunk)
	switch {
	case err != nil && !l.down:
		l.down = true
		l.log.Warn("The statistics sink cannot be reached; counts wait in a bounded buffer, then the newest are dropped. "+
			"If there is none, set DISABLE_STATS=true",
			"network", l.network, "address", l.address, "error", err)
	case err == nil && l.down:
		l.down = false
		l.log.Warn("The statistics sink is back", "network", l.network, "address", l.address, "dropped_lines", l.dropped.Load())
	}
	return rest, err
}

func (l *link) write(ctx context.Context, chunk []byte) ([]byte, error) {
	if l.conn == nil {
		d := net.Dialer{Timeout: dialTimeout}
		conn, err := d.DialContext(ctx, l.network, l.address)
		if err != nil {
			return chunk, err
		}
		l.conn = conn
		if l.network == "tcp" {
			go l.watch(conn)
		}
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return chunk, errors.Join(err, l.drop())
	}
	n, err := l.conn.Write(chunk)
	if err == nil {
		return nil, nil
	}
	_ = l.drop() // the error of the write says more
	if l.network == "udp" {
		if errors.Is(err, syscall.EMSGSIZE) {
			l.dropped.Add(1)
			return nil, nil // will never fit
		}
		return chunk, err
	}
	// What was cut must be sent again from its beginning; a whole line that
	// was written must not.
	return chunk[bytes.LastIndexByte(chunk[:n], '\n')+1:], err
}

// watch closes a TCP connection whose other side has gone: without it the
// first write after a restart of the sink would be lost in silence.
func (l *link) watch(conn net.Conn) {
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			conn.Close()
			return
		}
	}
}

func (l *link) drop() error {
	if l.conn == nil {
		return nil
	}
	err := l.conn.Close()
	l.conn = nil
	return err
}
