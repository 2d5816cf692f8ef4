//go:build integration

package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gale-rls/gale-rls/internal/testenv"
)

// redisConn speaks to Redis as the tests themselves: what they read and write
// there must not go through the code under test.
type redisConn struct {
	c net.Conn
	r *bufio.Reader
}

func redisAt(t testing.TB, addr string) *redisConn {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &redisConn{c: c, r: bufio.NewReader(c)}
}

// do sends one command and returns its reply: the values of a list, or one.
func (c *redisConn) do(args ...any) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		s := fmt.Sprint(a)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(s), s)
	}
	_ = c.c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(c.c, b.String()); err != nil {
		return nil, err
	}
	return c.reply()
}

func (c *redisConn) reply() ([]string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(rest)
	switch kind {
	case '-':
		return nil, fmt.Errorf("redis: %s", rest)
	case '$':
		if n < 0 {
			return nil, nil
		}
		value := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, value); err != nil {
			return nil, err
		}
		return []string{string(value[:n])}, nil
	case '*':
		var all []string
		for range n {
			one, err := c.reply()
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	return []string{rest}, nil
}

// must is do for a command that has to work; it returns the first value.
func (c *redisConn) must(t testing.TB, args ...any) string {
	t.Helper()
	all, err := c.do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// countersOf reads all counters of domain "leased": by entries as the key
// spells them (key_value), and the second in which the window begins.
func countersOf(t testing.TB, r *testenv.RedisServer) map[string]map[int64]int64 {
	t.Helper()
	c := redisAt(t, r.Addr)
	keys, err := c.do("KEYS", "leased_*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[int64]int64{}
	for _, k := range keys {
		cut := strings.LastIndex(k, "_")
		start, err := strconv.ParseInt(k[cut+1:], 10, 64)
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(c.must(t, "GET", k), 10, 64)
		if err != nil {
			continue // it expired meanwhile
		}
		name := strings.TrimPrefix(k[:cut], "leased_")
		if all[name] == nil {
			all[name] = map[int64]int64{}
		}
		all[name][start] = n
	}
	return all
}
