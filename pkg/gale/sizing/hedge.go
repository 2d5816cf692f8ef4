package sizing

import "math"

// Unknown is the prediction of one who has none.
const Unknown = -1

// maxLoss keeps losses finite, whatever is observed.
const maxLoss = 1e30

// Predictions is the number of predictions that a Hedge weighs.
const Predictions = 2

// Hedge weighs following each prediction of the demand against the learner,
// by what each would have cost so far. With good predictions it comes close
// to having known the demand; with bad ones to the learner. The zero value
// is ready.
type Hedge struct {
	// Robust is the expert that needs no prediction.
	Robust Learner
	// Loss is each prediction's cost so far, less that of Robust.
	Loss [Predictions]float32
}

// HedgeSize returns how many credits to ask for in a window of which these
// demands are predicted (Unknown: none).
func (p *Params) HedgeSize(h *Hedge, predicted [Predictions]float64) uint64 {
	weights, robust := p.hedgeWeights(h, predicted)
	size := robust * float64(p.Size(&h.Robust))
	for i, w := range weights {
		if w > 0 {
			size += w * p.follow(predicted[i])
		}
	}
	return p.round(size)
}

// HedgeObserve ends a window: demand as in Observe, predicted as it was given
// to HedgeSize for this window.
func (p *Params) HedgeObserve(h *Hedge, predicted [Predictions]float64, demand float64) {
	if !(demand > 0) {
		demand = 0
	}
	robust := p.Cost(demand, float64(p.Size(&h.Robust)))
	for i, d := range predicted {
		if known(d) {
			loss := float64(h.Loss[i]) + p.Cost(demand, p.follow(d)) - robust
			h.Loss[i] = float32(clamp(loss, -maxLoss, maxLoss))
		}
	}
	p.Observe(&h.Robust, demand)
}

// hedgeWeights returns softmax(-eta*loss) over the experts that are awake.
// Losses are relative to Robust, whose own is therefore 0.
func (p *Params) hedgeWeights(h *Hedge, predicted [Predictions]float64) (weights [Predictions]float64, robust float64) {
	eta := p.Eta
	if eta == 0 {
		eta = DefaultEta
	}
	least := 0.0
	for i, d := range predicted {
		if known(d) {
			least = math.Min(least, float64(h.Loss[i]))
		}
	}
	robust = math.Exp(eta * least)
	sum := robust
	for i, d := range predicted {
		if known(d) {
			weights[i] = math.Exp(-eta * (float64(h.Loss[i]) - least))
			sum += weights[i]
		}
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights, robust / sum
}

// follow returns the size of one who believes the prediction.
func (p *Params) follow(predicted float64) float64 {
	return float64(p.round(p.EOQ(predicted)))
}

func known(predicted float64) bool { return predicted >= 0 }
