package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

const clientHelp = `Usage: gale-rls client -domain D -descriptors k=v[,k=v...] [-descriptors ...]

Asks a running service as Envoy does, and prints the answers. Exit 0 for an
answer, OVER_LIMIT too; 1 when there is none.

  gale-rls client -domain gale -descriptors hello=you -repeat 3

Flags:
`

// descriptorFlag gathers the values of -descriptors.
type descriptorFlag [][]descriptors.Entry

func (f *descriptorFlag) String() string { return "" }

// Set parses "key=value,key=value". A value may contain "=".
func (f *descriptorFlag) Set(text string) error {
	var entries []descriptors.Entry
	for _, pair := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return errors.New("invalid descriptor list: write key=value,key=value")
		}
		entries = append(entries, descriptors.Entry{Key: key, Value: value})
	}
	*f = append(*f, entries)
	return nil
}

// clientFlags are the flags of the client of envoyproxy/ratelimit, and ours.
type clientFlags struct {
	address, domain           string
	asked                     descriptorFlag
	hits, refund              uint64
	raw, tls                  bool
	repeat                    int
	timeout                   time.Duration
	caFile, certFile, keyFile string
}

func (c *clientFlags) declare(flags *flag.FlagSet) {
	flags.StringVar(&c.address, "dial_string", "localhost:8081", "`host:port` of the service, or unix:///path")
	flags.StringVar(&c.domain, "domain", "", "domain of the request")
	flags.Var(&c.asked, "descriptors", "one descriptor, as `key=value,key=value`; may be repeated")
	flags.Uint64Var(&c.hits, "hits", 1, "hits of the request; 0 only looks")
	flags.Uint64Var(&c.refund, "negative-hits", 0, "hits to give back, instead of -hits")
	flags.IntVar(&c.repeat, "repeat", 1, "how often to ask")
	flags.DurationVar(&c.timeout, "timeout", 5*time.Second, "how long to wait for each answer")
	flags.BoolVar(&c.raw, "raw", false, "print the answers as protobuf text, one per line")
	flags.BoolVar(&c.tls, "grpc-use-tls", false, "connect with TLS")
	flags.StringVar(&c.caFile, "grpc-server-ca-file", "", "CA of the service, PEM `file`, besides those of the system")
	flags.StringVar(&c.certFile, "grpc-cert-file", "", "client certificate, PEM `file`")
	flags.StringVar(&c.keyFile, "grpc-key-file", "", "its key, PEM `file`")
	flags.String("oltp-protocol", "", "accepted, and without effect: the client does not trace")
}

func client(args []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	var c clientFlags
	c.declare(flags)
	if code, ok := parseFlags(flags, clientHelp, args, out, log); !ok {
		return code
	}
	if len(c.asked) == 0 {
		return usage(log, "client needs -domain and -descriptors")
	}
	transport, err := c.credentials()
	if err != nil {
		fmt.Fprintf(log, "error connecting: %v\n", err)
		return 1
	}
	conn, err := grpc.NewClient(c.address, grpc.WithTransportCredentials(transport))
	if err != nil {
		fmt.Fprintf(log, "error connecting: %v\n", err)
		return 1
	}
	defer conn.Close()
	return c.ask(rlsv3.NewRateLimitServiceClient(conn), out, log)
}

// ask sends the request as often as was asked for, and prints a line for each
// descriptor of each answer when it comes.
func (c *clientFlags) ask(service rlsv3.RateLimitServiceClient, out, log io.Writer) int {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for i := range c.repeat {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		answer, err := service.ShouldRateLimit(ctx, c.request(), grpc.WaitForReady(false))
		cancel()
		if err != nil {
			table.Flush()
			fmt.Fprintf(log, "request error: %v\n", err)
			return 1
		}
		if c.raw {
			fmt.Fprintf(out, "response: %v\n", answer)
			continue
		}
		if i == 0 {
			fmt.Fprintln(table, "#\tanswer\tdescriptor\tstatus\tlimit\tremaining\tresets in")
		}
		c.rows(table, i+1, answer)
	}
	return 0
}

func (c *clientFlags) request() *rlsv3.RateLimitRequest {
	// Hits stand on each descriptor, where 0 means 0; in the request, 0 hits
	// would mean 1.
	hits, negative := c.hits, false
	if c.refund > 0 {
		hits, negative = c.refund, true
	}
	r := &rlsv3.RateLimitRequest{Domain: c.domain}
	if hits <= math.MaxUint32 && hits > 0 && !negative {
		r.HitsAddend = uint32(hits)
	}
	for _, entries := range c.asked {
		d := &common.RateLimitDescriptor{IsNegativeHits: negative}
		if r.HitsAddend == 0 {
			d.HitsAddend = wrapperspb.UInt64(hits)
		}
		for _, e := range entries {
			d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: e.Key, Value: e.Value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

func (c *clientFlags) rows(table io.Writer, number int, answer *rlsv3.RateLimitResponse) {
	for i, s := range answer.GetStatuses() {
		asked := "?"
		if i < len(c.asked) {
			asked = spellEntries(c.asked[i])
		}
		limit, remaining, reset := "none", "", ""
		if l := s.GetCurrentLimit(); l != nil {
			limit = fmt.Sprintf("%d per %s", l.GetRequestsPerUnit(), strings.ToLower(l.GetUnit().String()))
			if l.GetName() != "" {
				limit += " (" + l.GetName() + ")"
			}
			remaining = fmt.Sprint(s.GetLimitRemaining())
		}
		if d := s.GetDurationUntilReset(); d != nil {
			reset = d.AsDuration().String()
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			number, answer.GetOverallCode(), asked, s.GetCode(), limit, remaining, reset)
	}
}

func (c *clientFlags) credentials() (credentials.TransportCredentials, error) {
	if !c.tls {
		return insecure.NewCredentials(), nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.caFile != "" {
		pool, err := withSystemPool(c.caFile)
		if err != nil {
			return nil, fmt.Errorf("-grpc-server-ca-file %s: %w", c.caFile, err)
		}
		t.RootCAs = pool
	}
	if c.certFile != "" || c.keyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			return nil, fmt.Errorf("-grpc-cert-file %s, -grpc-key-file %s: %w", c.certFile, c.keyFile, err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(t), nil
}
