package sizing

// Predictor foretells a key's demand: as in the last window, and as in the
// same window one period ago (an hour of minutes, a day of hours). It also
// runs the Hedge over both. Not safe for concurrent use.
type Predictor struct {
	hedge    Hedge
	last     float32
	started  bool
	next     int
	observed int
	season   []float32
}

// NewPredictor returns a predictor for demand that repeats after so many
// windows; below 2 there is no such memory. It keeps 4 bytes per window.
func NewPredictor(period int) *Predictor {
	if period < 2 {
		return &Predictor{}
	}
	return &Predictor{season: make([]float32, period)}
}

// Predict returns the demands foretold for the window that begins.
func (q *Predictor) Predict() [Predictions]float64 {
	predicted := [Predictions]float64{Unknown, Unknown}
	if q.started {
		predicted[0] = float64(q.last)
	}
	if n := len(q.season); n > 0 && q.observed >= n {
		predicted[1] = float64(q.season[q.next])
	}
	return predicted
}

// Size returns how many credits to ask for in the window that begins.
func (q *Predictor) Size(p *Params) uint64 {
	return p.HedgeSize(&q.hedge, q.Predict())
}

// Observe ends a window; demand as in Params.Observe.
func (q *Predictor) Observe(p *Params, demand float64) {
	p.HedgeObserve(&q.hedge, q.Predict(), demand)
	q.last, q.started = float32(demand), true
	if n := len(q.season); n > 0 {
		q.season[q.next] = float32(demand)
		q.next = (q.next + 1) % n
		q.observed = min(q.observed+1, n)
	}
}
