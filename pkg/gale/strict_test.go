package gale_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gale-rls/gale-rls/pkg/gale"
	"github.com/gale-rls/gale-rls/pkg/gale/memstore"
)

// bench is an engine over stores in memory, in a bubble whose clock stands
// at the middle of an hour.
type bench struct {
	*testing.T
	engine       *gale.Engine
	main, second *spy
}

// spy is a store that can be made to fail, and counts what it is asked.
type spy struct {
	gale.Store
	err           atomic.Pointer[error]
	slow          atomic.Int64 // nanoseconds
	counts, takes atomic.Int64
}

func (s *spy) fail(err error) { s.err.Store(&err) }

func (s *spy) outcome(ctx context.Context) error {
	if d := s.slow.Load(); d > 0 {
		select {
		case <-time.After(time.Duration(d)):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", gale.ErrUnavailable, ctx.Err())
		}
	}
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *spy) Count(ctx context.Context, steps []gale.CountStep) error {
	s.counts.Add(1)
	if err := s.outcome(ctx); err != nil {
		return err
	}
	return s.Store.Count(ctx, steps)
}

func (s *spy) CountAll(ctx context.Context, steps []gale.CountStep) (bool, error) {
	s.takes.Add(1)
	if err := s.outcome(ctx); err != nil {
		return false, err
	}
	return s.Store.CountAll(ctx, steps)
}

func (s *spy) Ready() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.Store.Ready()
}

var errGone = fmt.Errorf("%w: gone", gale.ErrUnavailable)

// run runs f with an engine of that configuration; two is for two stores.
func run(t *testing.T, c gale.Config, two bool, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour/2 - time.Duration(time.Now().UnixNano())%time.Hour + time.Hour)
		b := &bench{T: t, main: &spy{Store: memstore.New(memstore.Config{})}}
		b.second = b.main
		perSecond := gale.Store(nil)
		if two {
			b.second = &spy{Store: memstore.New(memstore.Config{})}
			perSecond = b.second
		}
		var err error
		if b.engine, err = gale.NewEngine(b.main, perSecond, c); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := b.engine.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		f(b)
	})
}

// charge is "name limit/window +hits flags": flags are cached, shadow, quota,
// shadowquota, second, refund, allow, deny, share.
func charge(text string) gale.Charge {
	p := &gale.Policy{Limit: gale.Limit{Window: 3600}}
	c := gale.Charge{Policy: p, Hits: 1}
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			c.Key = []byte("domain_" + word + "_")
		case i == 1:
			hits, window, has := strings.Cut(word, "/")
			p.Limit.Hits, _ = strconv.ParseUint(hits, 10, 64)
			if has {
				p.Limit.Window, _ = strconv.ParseInt(window, 10, 64)
			}
		case word[0] == '+':
			c.Hits, _ = strconv.ParseUint(word[1:], 10, 64)
		default:
			flag(word, p, &c)
		}
	}
	return c
}

func flag(word string, p *gale.Policy, c *gale.Charge) {
	switch word {
	case "cached":
		p.Mode = gale.ModeCachedDeny
	case "shadow":
		p.Role = gale.RoleShadow
	case "quota":
		p.Role = gale.RoleQuota
	case "shadowquota":
		p.Role = gale.RoleShadowQuota
	case "second":
		p.PerSecond = true
	case "refund":
		c.Refund = true
	case "allow":
		p.OnUnavailable = gale.UnavailableAllow
	case "deny":
		p.OnUnavailable = gale.UnavailableDeny
	case "share":
		p.OnUnavailable = gale.UnavailableLocalShare
	default:
		panic("unknown flag " + word)
	}
}

func request(charges ...string) *gale.Request {
	r := &gale.Request{Decisions: make([]gale.Decision, len(charges))}
	for _, text := range charges {
		r.Charges = append(r.Charges, charge(text))
	}
	return r
}

// show is one decision: OK or OVER, the counter, what remains, and why, if
// not the store.
func show(d gale.Decision) string {
	word := "OK"
	if d.Over {
		word = "OVER"
	}
	text := fmt.Sprintf("%s %d %d", word, d.After, d.Remaining)
	if d.Reason != gale.ReasonStore {
		text += " " + d.Reason.String()
	}
	return text
}

// decides checks the decisions of one request, separated by commas.
func (b *bench) decides(want string, charges ...string) *gale.Request {
	b.Helper()
	r := request(charges...)
	b.settles(want, r)
	return r
}

func (b *bench) settles(want string, r *gale.Request) {
	b.Helper()
	if err := b.engine.Decide(b.Context(), r); err != nil {
		b.Errorf("%v, want %s", err, want)
		return
	}
	var got []string
	for i := range r.Decisions {
		got = append(got, show(r.Decisions[i]))
		if reset := r.Decisions[i].Reset; reset < time.Second || reset > time.Hour || reset%time.Second != 0 {
			b.Errorf("reset of charge %d is %v", i, reset)
		}
	}
	if strings.Join(got, ", ") != want {
		b.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

func TestStrictCounts(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		b.decides("OK 1 2", "k 3")
		b.decides("OK 3 0, OK 5 95", "k 3 +2", "big 100 +5")
		b.decides("OK 3 0", "k 3 +0") // a peek at the limit
		// As in the reference, what is refused is counted, and the others too.
		b.decides("OVER 4 0, OK 6 94", "k 3", "big 100")
		b.decides("OVER 4 0", "k 3 +0")
		b.decides("OVER 1 0", "none 0")
		b.decides("OK 0 0", "nothing 0 +0")
		b.decides("OK 1 1, OK 2 0, OVER 3 0", "twice 2", "twice 2", "twice 2")
		if n := b.main.counts.Load(); n != 8 {
			b.Errorf("8 requests took %d round trips", n)
		}
	})
}

func TestStrictWindows(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		r := b.decides("OK 1 0, OK 1 0, OK 1 0", "h 1", "m 1/60", "s 1/1")
		want := []time.Duration{time.Hour / 2, time.Minute, time.Second}
		for i, d := range r.Decisions {
			if d.Reset != want[i] {
				b.Errorf("reset %v, want %v", d.Reset, want[i])
			}
		}
		time.Sleep(1500 * time.Millisecond)
		r = b.decides("OVER 2 0, OVER 2 0, OK 1 0", "h 1", "m 1/60", "s 1/1")
		if got := r.Decisions[1].Reset; got != 59*time.Second {
			b.Errorf("reset %v", got)
		}
		time.Sleep(59 * time.Second)
		b.decides("OVER 3 0, OK 1 0, OK 1 0", "h 1", "m 1/60", "s 1/1")
	})
}

func TestStrictNamesCountersAsTheReference(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		b.decides("OK 3 2", "key_välue 5 +3")
		start := time.Now().Unix() / 3600 * 3600
		steps := []gale.CountStep{{Key: fmt.Sprintf("domain_key_välue_%d", start), Op: gale.CountRefund}}
		if err := b.main.Store.Count(b.Context(), steps); err != nil || steps[0].After != 3 {
			b.Errorf("counter is %d, %v", steps[0].After, err)
		}
	})
}

func TestRefunds(t *testing.T) {
	run(t, gale.Config{DenyCacheForStrict: true}, false, func(b *bench) {
		b.decides("OK 0 3 refund", "k 3 refund")
		b.decides("OK 3 0", "k 3 +3")
		b.decides("OVER 5 0", "k 3 +2")
		b.decides("OVER 6 0 deny_cache", "k 3")
		b.decides("OK 2 1 refund", "k 3 +3 refund")
		b.decides("OK 3 0", "k 3") // the deny cache has forgotten it
		b.decides("OK 0 3 refund", "k 3 +99 refund")
		b.decides("OK 4 1, OK 2 3 refund, OK 3 2", "o 5 +4", "o 5 +2 refund", "o 5")
	})
}

func TestDenyCacheOfStrictRules(t *testing.T) {
	run(t, gale.Config{DenyCacheForStrict: true}, false, func(b *bench) {
		b.decides("OVER 5 0, OK 1 99", "k 2 +5", "big 100")
		asked := b.main.counts.Load()
		b.decides("OVER 12 0 deny_cache", "k 2 +7")
		b.decides("OVER 5 0 deny_cache", "k 2 +0")
		if b.main.counts.Load() != asked {
			b.Error("the store was asked for a known denial")
		}
		// The others of the request are counted as usual.
		b.decides("OVER 6 0 deny_cache, OK 2 98", "k 2", "big 100")
		// A larger limit, by override or reload, ends it.
		b.decides("OK 6 44", "k 50")
		b.decides("OVER 6 0 deny_cache", "k 2")
		// So does the window's end.
		time.Sleep(time.Hour)
		b.decides("OK 1 1", "k 2")
		got := b.engine.Stats().DenyCache
		want := gale.DenyCacheStats{Lookups: 9, Hits: 4, Misses: 5, Stored: 1, Entries: 1}
		if got != want {
			b.Errorf("%+v, want %+v", got, want)
		}
	})
}

func TestDenyCacheOnlyWhereAsked(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		b.decides("OVER 1 0, OVER 1 0, OVER 1 0", "strict 0", "cached 0 cached", "shadow 0 cached shadow")
		b.decides("OVER 2 0, OVER 2 0 deny_cache, OVER 2 0 deny_cache", "strict 0", "cached 0 cached", "shadow 0 cached shadow")
	})
}

func TestTogether(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true}, false, func(b *bench) {
		b.decides("OK 1 1, OK 10 90", "k 2", "big 100 +10")
		b.decides("OVER 3 0, OK 10 90", "k 2 +2", "big 100 +10")
		b.decides("OK 2 0, OK 11 89", "k 2", "big 100")
		b.decides("OK 2 0, OK 12 88", "k 2 +0", "big 100") // a peek spares nobody
		b.decides("OVER 3 0, OVER 1 0, OK 12 88", "k 2", "none 0", "big 100")
		b.decides("OK 13 87", "big 100")
		// Twice the same: each fits, both do not, and none is taken.
		b.decides("OK 0 1, OVER 2 0", "dup 1", "dup 1")
		b.decides("OK 1 0", "dup 1")
		// Refunds are made whatever happens to the others.
		b.decides("OVER 3 0, OK 8 92 refund", "k 2", "big 100 +5 refund")
		b.decides("OK 8 92", "big 100 +0")
	})
}

func TestTogetherSparesNobodyForBystanders(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true}, false, func(b *bench) {
		b.decides("OVER 1 0, OK 1 1", "shadow 0 shadow", "real 2")
		b.decides("OVER 2 0, OK 2 0", "shadow 0 shadow", "real 2")
		b.decides("OVER 3 0, OVER 3 0", "shadow 0 shadow", "real 2")
		b.decides("OVER 3 0, OK 0 5", "real 2", "other 5") // spared by the real one

		b.decides("OVER 1 0, OK 1 1", "first 0 quota", "second 2 quota")
		b.decides("OVER 2 0, OK 2 0", "first 0 quota", "second 2 quota")
		b.decides("OVER 3 0, OVER 3 0", "first 0 quota", "second 2 quota")
		// A single quota is like a limit.
		b.decides("OVER 1 0, OK 0 5", "single 0 quota", "other 5")
		// Unless the request carries a quota that always passes.
		r := request("single 0 quota", "other 5")
		r.FreeQuota = true
		b.settles("OVER 1 0, OK 1 4", r)
		// Nothing is enforced: all is counted.
		r = request("none 0", "other 5")
		r.Unenforced = true
		b.settles("OVER 1 0, OK 2 3", r)
	})
}

func TestTogetherWithDenyCache(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true, DenyCacheForStrict: true}, false, func(b *bench) {
		b.decides("OK 1 1, OK 1 99", "k 2", "big 100")
		b.decides("OK 2 0, OK 2 98", "k 2", "big 100")
		b.decides("OVER 3 0, OK 2 98", "k 2", "big 100")
		for range 3 {
			b.decides("OVER 3 0 deny_cache, OK 2 98", "k 2", "big 100")
		}
		b.decides("OK 3 97", "big 100")
		got := b.engine.Stats().DenyCache
		if got.Hits != 3 || got.Misses != 10 || got.Lookups != 13 { // as recorded in stop-local-cache
			b.Errorf("%+v", got)
		}
		// An expensive call that was refused does not refuse a cheap one.
		b.decides("OVER 7 0", "e 5 +7")
		b.decides("OVER 7 0 deny_cache", "e 5 +7")
		b.decides("OK 3 2", "e 5 +3")
		// Known bystanders spare nobody.
		b.decides("OVER 1 0, OK 1 4", "shadow 0 shadow", "other 5")
		b.decides("OVER 2 0 deny_cache, OK 2 3", "shadow 0 shadow", "other 5")
	})
}

func TestTogetherOverTwoStores(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true}, true, func(b *bench) {
		b.decides("OVER 1 0, OK 0 5", "s 0 second", "h 5")
		b.decides("OK 1 4", "h 5")
		b.decides("OVER 1 0, OK 0 5", "none 0", "t 5 second")
		b.decides("OK 1 4, OK 2 3", "t 5 second", "h 5")
		b.decides("OVER 9 0, OK 2 3, OVER 1 0", "t 5 second +8", "h 5", "shadow 0 shadow")
		b.decides("OK 2 3, OK 3 2", "t 5 second", "h 5")
	})
}

func TestTogetherUndoesWhenTheSecondStoreFails(t *testing.T) {
	run(t, gale.Config{StopWhenOver: true}, true, func(b *bench) {
		b.second.fail(errGone)
		r := request("h 5", "s 5 second")
		if err := b.engine.Decide(b.Context(), r); !errors.Is(err, gale.ErrUnavailable) {
			b.Errorf("%v", err)
		}
		synctest.Wait()
		b.decides("OK 0 5", "h 5 +0")
		b.decides("OK 1 4, OVER 6 0 fallback_deny, OVER 1 0", "h 5 shadow", "s 5 second deny shadow", "none 0 shadow")
		b.decides("OK 1 4, OVER 6 0 fallback_deny", "h 5", "s 5 second deny")
		b.decides("OK 1 4", "h 5 +0")
	})
}

func TestTwoStoresAtOnce(t *testing.T) {
	run(t, gale.Config{}, true, func(b *bench) {
		b.main.slow.Store(int64(30 * time.Millisecond))
		b.second.slow.Store(int64(40 * time.Millisecond))
		synctest.Wait() // the lanes wait for work
		began := time.Now()
		b.decides("OK 1 4, OK 2 3, OVER 1 0", "s 5 second", "h 5 +2", "t 0 second")
		if took := time.Since(began); took != 40*time.Millisecond {
			b.Errorf("took %v, the slower store takes 40ms", took)
		}
		// More at once than there are lanes: slower, not wrong.
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				if err := b.engine.Decide(b.Context(), request("many 1000 second", "many 1000")); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		b.decides("OK 200 800, OK 200 800", "many 1000 second +0", "many 1000 +0")
	})
}

func TestOverflow(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		b.decides(fmt.Sprintf("OVER %d 0", math.MaxInt64), fmt.Sprintf("k 3 +%d", math.MaxInt64))
		for range 10 {
			err := b.engine.Decide(b.Context(), request("w 3 allow +0", "k 3 allow"))
			if !errors.Is(err, gale.ErrOverflow) || !strings.Contains(err.Error(), "overflow") {
				b.Fatalf("%v", err)
			}
		}
		b.decides("OK 1 2", "w 3") // the breaker is closed
	})
}

func TestRoomForDecisions(t *testing.T) {
	run(t, gale.Config{}, false, func(b *bench) {
		r := request("k 3", "k 3")
		r.Decisions = r.Decisions[:1]
		if err := b.engine.Decide(b.Context(), r); err == nil {
			b.Error("no error")
		}
		b.settles("", &gale.Request{})
	})
}

func TestBadConfig(t *testing.T) {
	if _, err := gale.NewEngine(nil, nil, gale.Config{}); err == nil {
		t.Error("no error without a store")
	}
	_, err := gale.NewEngine(memstore.New(memstore.Config{}), nil, gale.Config{DenyCacheKeys: -1, OpTimeout: -time.Second})
	if err == nil || !strings.Contains(err.Error(), "DenyCacheKeys") || !strings.Contains(err.Error(), "OpTimeout") {
		t.Errorf("%v", err)
	}
}

func BenchmarkStrict(b *testing.B) {
	e, err := gale.NewEngine(memstore.New(memstore.Config{}), nil, gale.Config{ExpirationJitter: 300 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	r := request("key_value 1000000000", "other_value 1000000000/60")
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Decide(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
