package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/gale-rls/gale-rls/internal/settings"
)

// door is a plain HTTP port.
type door struct {
	name    string // as the log says it
	address string
	server  *http.Server
}

// Bounds of what one HTTP client can hold open. They leave out writing: a
// profile takes as long as it was asked to.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	headerBytes   = 64 << 10
)

func newDoor(name string, l settings.Listener, h http.Handler) door {
	return door{name: name, address: listenAddress(l), server: &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
	}}
}

// listenAddress joins host and port; the host may be an IPv6 address, with
// brackets or without.
func listenAddress(l settings.Listener) string {
	host := strings.TrimSuffix(strings.TrimPrefix(l.Host, "["), "]")
	return net.JoinHostPort(host, strconv.Itoa(l.Port))
}

// open opens all doors. A debug port that cannot be opened is only logged: it
// is not what the service is for.
func (a *app) open(failed chan<- error) error {
	listener, err := a.listenGRPC()
	if err != nil {
		return err
	}
	var listeners []net.Listener
	for _, d := range a.http {
		l, err := net.Listen("tcp", d.address)
		if err != nil && d.name == "debug" {
			a.log.Error("Cannot open the debug port; set DEBUG_HOST or DEBUG_PORT", "address", d.address, "error", err)
		} else if err != nil {
			_ = listener.Close()
			return fmt.Errorf("cannot open the %s port %s: %w; %s", d.name, d.address, err, wayOutOf(d.name))
		}
		listeners = append(listeners, l)
	}
	for i, d := range a.http {
		if listeners[i] == nil {
			continue
		}
		a.log.Warn(fmt.Sprintf("Listening for %s on '%s'", d.name, opened(d.address, listeners[i])))
		go func() {
			if err := d.server.Serve(listeners[i]); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("the %s port: %w", d.name, err)
			}
		}()
	}
	a.log.Warn(fmt.Sprintf("Listening for gRPC on '%s'", opened(listenAddress(a.settings.GRPC.Listener), listener)))
	go func() {
		if err := a.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			failed <- fmt.Errorf("the gRPC door: %w", err)
		}
	}()
	return nil
}

// opened is the address as it was asked for, with the port that it became.
func opened(asked string, l net.Listener) string {
	tcp, ok := l.Addr().(*net.TCPAddr)
	host, _, err := net.SplitHostPort(asked)
	if !ok || err != nil {
		return l.Addr().String()
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

func wayOutOf(name string) string {
	if name == "Prometheus" {
		return "set PROMETHEUS_ADDR to a free one"
	}
	return "set HOST or PORT to a free one"
}

// listenGRPC listens on the port, or on the unix socket instead.
func (a *app) listenGRPC() (net.Listener, error) {
	g := a.settings.GRPC
	if g.Socket == "" {
		l, err := net.Listen("tcp", listenAddress(g.Listener))
		if err != nil {
			return nil, fmt.Errorf("cannot open the gRPC port: %w; set GRPC_HOST or GRPC_PORT to a free one", err)
		}
		return l, nil
	}
	if err := removeStaleSocket(g.Socket); err != nil {
		return nil, fmt.Errorf("GRPC_UDS=%q: %w", g.Socket, err)
	}
	l, err := net.Listen("unix", g.Socket)
	if err != nil {
		return nil, fmt.Errorf("GRPC_UDS=%q: %w", g.Socket, err)
	}
	return l, nil
}

// removeStaleSocket removes the socket of a process that is gone; never a
// file that is no socket, nor a socket on which somebody listens.
func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return errors.New("there is a file that is no socket; remove it, or name another path")
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process listens there; end it, or name another path")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("there is a socket, and whether somebody listens is unknown: %w; remove it", err)
	}
	return os.Remove(path)
}

// close drains and ends everything, in the order in which requests pass; what
// is not done when ctx ends is cut off.
func (a *app) close(ctx context.Context) {
	a.health.Drain()
	a.drainGRPC(ctx)
	for i := len(a.http) - 1; i >= 0; i-- { // debug last
		if err := a.http[i].server.Shutdown(ctx); err != nil {
			_ = a.http[i].server.Close()
		}
	}
	// What is held here goes back also when draining took all the time: it
	// is little, and nobody else can use it.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReturn)
	defer cancel()
	if err := a.engine.Close(last); err != nil {
		a.log.Warn("Some credits were not returned; they are lost until their windows end", "error", err)
	}
	for _, store := range a.stores {
		if err := store.Close(); err != nil {
			a.log.Warn("Closing the store", "error", err)
		}
	}
	if a.certs != nil {
		a.certs.close()
	}
}

// lastReturn bounds handing credits back.
const lastReturn = 2 * time.Second

func (a *app) drainGRPC(ctx context.Context) {
	drained := make(chan struct{})
	go func() {
		a.grpc.GracefulStop()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		a.log.Warn("Requests under way were cut off", "after", a.settings.Lifecycle.DrainTimeout.String())
		a.grpc.Stop()
		<-drained
	}
}
