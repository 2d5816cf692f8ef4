package rls

import (
	"sync/atomic"

	"github.com/gale-rls/gale-rls/pkg/gale"
)

const numModes = int(gale.ModeLeased) + 1

// decisionCounts counts decisions by mode, reason and result: closed sets, so
// that they need no bound. What they say of single rules is in the statistics.
type decisionCounts [numModes][gale.NumReasons][2]atomic.Uint64

// Results of a decision, as an index of decisionCounts.
const (
	resultOK = iota
	resultOver
)

func (n *decisionCounts) add(mode gale.Mode, d *gale.Decision) {
	if int(mode) >= numModes || int(d.Reason) >= gale.NumReasons {
		return // a Decider of a later version
	}
	result := resultOK
	if d.Over {
		result = resultOver
	}
	n[mode][d.Reason][result].Add(1)
}
