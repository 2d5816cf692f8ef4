package descriptors

import "fmt"

// Step is what one entry of a descriptor met.
type Step struct {
	Entry    Entry
	Matched  string   // the final key of the descriptor that was taken, "" for none
	How      string   // "exact", "wildcard", "key only" or "nothing"
	Position Position // of the descriptor that was taken
	Why      string   // a sentence
}

// Explain is Match with its reasons: one step per entry, up to the first that
// met nothing. An unknown domain gives no steps.
func (t *Tree) Explain(name string, entries []Entry) ([]Step, Match) {
	var m Match
	t.Match(name, entries, &m)
	d := t.domains[name]
	if d == nil {
		return nil, m
	}
	var steps []Step
	for l, i := &d.root, 0; i < len(entries); i++ {
		step := Step{Entry: entries[i]}
		if l == nil {
			step.How, step.Why = "nothing", "the rules end one level above: this descriptor has more entries than they are deep"
			return append(steps, step), m.clean()
		}
		n := m.step(l, &entries[i])
		step.describe(n, i == len(entries)-1)
		steps = append(steps, step)
		if n == nil {
			break
		}
		l = n.children
	}
	return steps, m.clean()
}

// clean drops the memory of look-ups, so that the Match may be copied.
func (m *Match) clean() Match {
	return Match{Rule: m.Rule, DomainKnown: m.DomainKnown, node: m.node}
}

func (s *Step) describe(n *node, last bool) {
	joined := s.Entry.Key + "_" + s.Entry.Value
	switch {
	case n == nil:
		s.How = "nothing"
		s.Why = fmt.Sprintf("no descriptor %q, no wildcard that fits it, and no descriptor %q without a value", joined, s.Entry.Key)
		return
	case n.final == joined:
		s.How, s.Why = "exact", "key and value are those of the entry"
	case n.byKey(&s.Entry):
		s.How, s.Why = "key only", "the descriptor has no value, so that it takes any; nothing more exact fits"
	default:
		s.How, s.Why = "wildcard", "the first wildcard of the file that fits; there is no exact descriptor"
	}
	s.Matched, s.Position = n.final, n.position
	switch {
	case last && n.rule == nil:
		s.Why += "; it has no rate_limit, so that nothing is limited"
	case last:
		s.Why += "; its rate_limit applies"
	case n.children == nil:
		s.Why += "; it has no descriptors below it"
	}
}
