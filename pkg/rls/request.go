package rls

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/gale-rls/gale-rls/internal/stats"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
	"github.com/gale-rls/gale-rls/pkg/gale"
)

// call is the working memory of one request. It is reused, so that what does
// not go into the answer costs no allocation.
type call struct {
	// items stand at the positions of the request's descriptors.
	items []item
	// request has a charge for each item that is charged, in order.
	request     gale.Request
	domainKnown bool

	entries   []descriptors.Entry // of the descriptor being read
	match     descriptors.Match
	keys      []byte        // of all charges, one after the other
	name      []byte        // the statistic's name being built
	overrides []gale.Policy // never grown while a request points into it
	replaced  map[string]struct{}
}

// item is what became of one descriptor.
type item struct {
	outcome outcome
	charge  int // in call.request, if charged
	// rule is the one that matched, nil for none and for overrides.
	rule *descriptors.Rule
	// override is the limit that the request brought, if hasOverride.
	override    override
	hasOverride bool

	policy         *gale.Policy
	keyFrom, keyTo int
	counters       *stats.RuleCounters
	refunds        *stats.Counter // only if the hits are negative
}

// outcome says whether a limit applies to a descriptor.
type outcome uint8

const (
	outcomeNone outcome = iota // no limit: nothing matched, or it was replaced
	outcomeUnlimited
	outcomeCharged
)

// What is larger than this is not kept for reuse, so that one absurd request
// does not hold memory for ever.
const (
	maxKeptItems = 128
	maxKeptBytes = 32 << 10
)

// read fills the call from a request. Nothing is counted when it fails.
func (c *call) read(s *Service, rules *ruleSet, req *rlsv3.RateLimitRequest) error {
	list := req.GetDescriptors()
	c.items = slices.Grow(c.items, len(list))[:len(list)]
	domain := req.GetDomain()
	if !utf8.ValidString(domain) {
		return &invalidError{-1, "domain is not valid UTF-8"}
	}
	replacing := false
	for i, d := range list {
		if err := c.readEntries(i, d); err != nil {
			return err
		}
		it := &c.items[i]
		if limit := d.GetLimit(); limit != nil {
			rules.tree.Match(domain, nil, &c.match)
			c.domainKnown = c.match.DomainKnown
			if !c.domainKnown {
				continue
			}
			o, why := readOverride(limit)
			if why != "" {
				return &invalidError{i, why}
			}
			c.applyOverride(s, rules, it, domain, o, len(list))
		} else {
			rules.tree.Match(domain, c.entries, &c.match)
			c.domainKnown = c.match.DomainKnown
			if c.match.Rule == nil {
				continue
			}
			replacing = replacing || len(c.match.Rule.Replaces) > 0
			c.applyRule(s, rules, it, domain)
		}
		if it.outcome == outcomeCharged && d.GetIsNegativeHits() {
			c.nameRefunds(s, it, domain)
		}
	}
	if replacing {
		c.dropReplaced()
	}
	return c.charge(s, req)
}

// readEntries copies a descriptor's entries into c.entries.
func (c *call) readEntries(i int, d *commonv3.RateLimitDescriptor) error {
	c.entries = c.entries[:0]
	for j, e := range d.GetEntries() {
		entry := descriptors.Entry{Key: e.GetKey(), Value: e.GetValue()}
		if !utf8.ValidString(entry.Key) {
			return &invalidError{i, fmt.Sprintf("entries[%d].key is not valid UTF-8", j)}
		}
		if !utf8.ValidString(entry.Value) {
			return &invalidError{i, fmt.Sprintf("entries[%d].value is not valid UTF-8", j)}
		}
		c.entries = append(c.entries, entry)
	}
	return nil
}

func (c *call) applyOverride(s *Service, rules *ruleSet, it *item, domain string, o override, descriptorCount int) {
	if cap(c.overrides) < descriptorCount {
		c.overrides = make([]gale.Policy, 0, descriptorCount)
	}
	c.overrides = append(c.overrides, overridePolicy(rules.tree.DomainGale(domain), o, s.config.QuotaMode))
	it.policy = &c.overrides[len(c.overrides)-1]
	it.outcome = outcomeCharged
	it.override, it.hasOverride = o, true

	it.keyFrom = len(c.keys)
	c.keys = descriptors.AppendOverrideKey(c.keys, s.config.KeyPrefix, domain, c.entries)
	it.keyTo = len(c.keys)
	c.name = descriptors.AppendOverrideStatName(c.name[:0], domain, c.entries)
	it.counters = s.stats.DynamicRule(c.name)
}

func (c *call) applyRule(s *Service, rules *ruleSet, it *item, domain string) {
	it.rule = c.match.Rule
	if it.rule.Unlimited {
		it.outcome = outcomeUnlimited
		return
	}
	it.outcome = outcomeCharged
	bound := &rules.rules[it.rule.Index]
	it.policy = &bound.policy

	it.keyFrom = len(c.keys)
	c.keys = c.match.AppendKey(c.keys, s.config.KeyPrefix, domain, c.entries)
	it.keyTo = len(c.keys)
	it.counters = bound.counters
	if it.counters == nil {
		c.name = c.match.AppendStatName(c.name[:0], domain, c.entries)
		it.counters = s.stats.DynamicRule(c.name)
	}
}

// nameRefunds finds the counter of hits that are given back. Refunds are rare
// beside hits, so that it is not one of the permanent six of a rule.
func (c *call) nameRefunds(s *Service, it *item, domain string) {
	c.name = append(c.name[:0], rulePrefix...)
	switch {
	case it.hasOverride:
		c.name = descriptors.AppendOverrideStatName(c.name, domain, c.entries)
	case it.rule.StatName != "":
		c.name = append(c.name, it.rule.StatName...)
	default:
		c.name = c.match.AppendStatName(c.name, domain, c.entries)
	}
	c.name = append(c.name, ".total_negative_hits"...)
	it.refunds = s.stats.Dynamic(c.name)
}

// dropReplaced frees the descriptors whose limit is named by the `replaces` of
// any rule that this request matched. One pass: a rule that is itself replaced
// still replaces, and two that replace each other both go. Unlimited rules
// replace, and are not replaced: they have nothing to lose.
func (c *call) dropReplaced() {
	if c.replaced == nil {
		c.replaced = make(map[string]struct{})
	}
	for i := range c.items {
		if rule := c.items[i].rule; rule != nil {
			for _, name := range rule.Replaces {
				c.replaced[name] = struct{}{}
			}
		}
	}
	for i := range c.items {
		it := &c.items[i]
		if it.outcome != outcomeCharged || it.rule == nil {
			continue
		}
		if _, ok := c.replaced[it.rule.Name]; ok {
			it.outcome = outcomeNone
		}
	}
}

// charge builds the engine's request from the items.
func (c *call) charge(s *Service, req *rlsv3.RateLimitRequest) error {
	for i, d := range req.GetDescriptors() {
		it := &c.items[i]
		switch it.outcome {
		case outcomeCharged:
			hits := hitsOf(req, d)
			if hits > math.MaxInt64 {
				return &invalidError{i, fmt.Sprintf("hits_addend is %d; want at most %d", hits, int64(math.MaxInt64))}
			}
			it.charge = len(c.request.Charges)
			c.request.Charges = append(c.request.Charges, gale.Charge{
				Key:    c.keys[it.keyFrom:it.keyTo:it.keyTo],
				Policy: it.policy,
				Hits:   hits,
				Refund: d.GetIsNegativeHits(),
			})
		case outcomeNone:
			// Global quota mode makes a quota that always passes of what has
			// no limit, unlike of what is unlimited.
			c.request.FreeQuota = c.request.FreeQuota || s.config.QuotaMode
		}
	}
	n := len(c.request.Charges)
	c.request.Decisions = slices.Grow(c.request.Decisions, n)[:n]
	c.request.Unenforced = s.config.ShadowMode
	return nil
}

// hitsOf is how many hits a descriptor adds: its own number (0 is a peek),
// else the request's, else 1.
func hitsOf(req *rlsv3.RateLimitRequest, d *commonv3.RateLimitDescriptor) uint64 {
	if own := d.GetHitsAddend(); own != nil {
		return own.GetValue()
	}
	return max(uint64(req.GetHitsAddend()), 1)
}

// reset makes the call ready for another request, without references to this
// one. It reports whether the call is worth keeping.
func (c *call) reset() bool {
	if cap(c.items) > maxKeptItems || cap(c.keys) > maxKeptBytes ||
		cap(c.name) > maxKeptBytes || cap(c.entries) > maxKeptItems ||
		len(c.replaced) > maxKeptItems {
		return false
	}
	clear(c.items)
	clear(c.entries[:cap(c.entries)])
	clear(c.request.Charges)
	clear(c.request.Decisions)
	c.items, c.entries = c.items[:0], c.entries[:0]
	c.keys, c.overrides = c.keys[:0], c.overrides[:0]
	c.request.Charges, c.request.Decisions = c.request.Charges[:0], c.request.Decisions[:0]
	c.request.FreeQuota, c.request.Unenforced = false, false
	c.match.Rule = nil
	clear(c.replaced)
	c.domainKnown = false
	return true
}

// countUnknownDomain counts n descriptors of a domain that no file names. The
// name is the caller's, so that the counter lives in the bounded set.
func (c *call) countUnknownDomain(s *Service, domain string, n int) {
	c.name = append(c.name[:0], rulePrefix...)
	c.name = descriptors.AppendOverrideStatName(c.name, domain, nil) // without entries: the clean domain, and a dot
	c.name = append(c.name, "domain_not_found"...)
	s.stats.Dynamic(c.name).Add(uint64(n))
}
