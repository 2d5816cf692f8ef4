package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

// Free ports are taken below the range that Linux uses for outgoing
// connections, so that a connection never grabs the port of a server that
// is being restarted.
const (
	firstPort = 15000
	numPorts  = 17000
)

// FreePort returns a TCP port on which nothing listens at the moment.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 200 {
		port := firstPort + rand.IntN(numPorts)
		l, err := net.Listen("tcp", addr(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatal("no free port on 127.0.0.1")
	return 0
}

func addr(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// accepts reports whether something accepts connections there.
func accepts(network, address string) bool {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
