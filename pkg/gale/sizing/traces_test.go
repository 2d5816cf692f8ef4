package sizing_test

import "math"

// mulberry32 is the 32-bit generator that the published figures were drawn
// with, so that they can be compared to the last digit.
type mulberry32 uint32

func (m *mulberry32) float() float64 {
	*m += 0x6D2B79F5
	a := uint32(*m)
	t := (a ^ a>>15) * (1 | a)
	t = (t + (t^t>>7)*(61|t)) ^ t
	return float64(t^t>>14) / 4294967296
}

// normal is the sum of twelve uniforms less six: about N(0, 1).
func (m *mulberry32) normal() float64 {
	sum := 0.0
	for range 12 {
		sum += m.float()
	}
	return sum - 6
}

// hits draws max(0, round(mean*(1+cv*z))).
func (m *mulberry32) hits(mean, cv float64) float64 {
	return math.Max(0, math.Floor(mean*(1+cv*m.normal())+0.5))
}

// stationary has one mean throughout.
func stationary(windows int, mean, cv float64, seed uint32) []float64 {
	random := mulberry32(seed)
	trace := make([]float64, windows)
	for i := range trace {
		trace[i] = random.hits(mean, cv)
	}
	return trace
}

// wave describes a mean of base + amplitude*sin, with so many periods.
type wave struct{ base, amplitude, periods float64 }

func drift(windows int, w wave, cv float64, seed uint32) []float64 {
	random := mulberry32(seed)
	trace := make([]float64, windows)
	for i := range trace {
		mean := w.base + w.amplitude*math.Sin(2*math.Pi*w.periods*float64(i)/float64(windows))
		trace[i] = random.hits(mean, cv)
	}
	return trace
}

// square jumps between two means in equal blocks, the low one first.
func square(windows int, low, high float64, blocks int, cv float64, seed uint32) []float64 {
	random := mulberry32(seed)
	trace := make([]float64, windows)
	for i := range trace {
		mean := low
		if i*blocks/windows%2 == 1 {
			mean = high
		}
		trace[i] = random.hits(mean, cv)
	}
	return trace
}
