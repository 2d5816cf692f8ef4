package main

import (
	"bytes"
	"fmt"
	"html"

	"github.com/gale-rls/gale-rls/pkg/gale/sim"
)

// The plot's size in pixels, and the room around it.
const (
	plotWidth, plotHeight = 800, 320
	plotLeft, plotRight   = 70, 20
	plotTop, plotBottom   = 40, 50
	// plotBars is how many windows are drawn; of more, neighbours share a
	// bar, which shows the worst of them.
	plotBars = 120
)

// plotWindows draws offered and admitted hits of each window, and the limit.
func plotWindows(title string, limit uint64, windows []sim.WindowResult) []byte {
	per := max((len(windows)+plotBars-1)/plotBars, 1)
	var bars []sim.WindowResult
	top := limit
	for i := 0; i < len(windows); i += per {
		var b sim.WindowResult
		for _, w := range windows[i:min(i+per, len(windows))] {
			b.Offered, b.Admitted = max(b.Offered, w.Offered), max(b.Admitted, w.Admitted)
		}
		bars = append(bars, b)
		top = max(top, b.Offered)
	}
	height := float64(plotHeight - plotTop - plotBottom)
	y := func(hits uint64) float64 {
		return float64(plotHeight-plotBottom) - height*float64(hits)/(1.1*float64(top))
	}
	step := float64(plotWidth-plotLeft-plotRight) / float64(max(len(bars), 1))
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15">%s</text>`+"\n", plotLeft, html.EscapeString(title))
	bar := func(i int, hits uint64, colour string, width float64) {
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n",
			plotLeft+step*(float64(i)+(1-width)/2), y(hits), step*width, y(0)-y(hits), colour)
	}
	for i, w := range bars {
		bar(i, w.Offered, "#cccccc", 0.9)
		bar(i, w.Admitted, "#2f7ed8", 0.6)
	}
	fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#c00000" stroke-width="2"/>`+"\n",
		plotLeft, y(limit), plotWidth-plotRight, y(limit))
	fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="black"/>`+"\n", plotLeft, y(0), plotWidth-plotRight, y(0))
	for _, hits := range []uint64{0, limit} {
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", plotLeft-6, y(hits)+4, hits)
	}
	legend := [][2]string{{"#cccccc", "offered"}, {"#2f7ed8", "admitted"}, {"#c00000", "limit"}}
	for i, l := range legend {
		x := plotLeft + 110*i
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			x, plotHeight-24, l[0], x+18, plotHeight-14, l[1])
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">windows of the store, %d in all</text>`+"\n</svg>\n",
		plotWidth-plotRight, plotHeight-14, len(windows))
	return b.Bytes()
}
