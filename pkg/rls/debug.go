package rls

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/gale-rls/gale-rls/internal/stats"
)

// Page is a page of the debug port.
type Page struct {
	// Path is exact, or a whole subtree if it ends in "/".
	Path string
	// About is what the list of pages says of it.
	About   string
	Handler http.Handler
}

// NewDebugHandler serves the debug port: the rules in use, the statistics,
// profiles, and further pages. Every other path lists the pages.
//
// It is not for clients: it shows rules, and profiles cost time.
func NewDebugHandler(s *Service, r *stats.Registry, further ...Page) http.Handler {
	pages := append([]Page{
		{"/debug/pprof/", "root of various pprof endpoints. hit for help.", http.HandlerFunc(pprof.Index)},
		{"/debug/pprof/profile", "CPU profiling endpoint", http.HandlerFunc(pprof.Profile)},
		{"/debug/pprof/trace", "trace endpoint", http.HandlerFunc(pprof.Trace)},
		{"/rlconfig", "print out the currently loaded configuration for debugging", TextPage(s.dumpRules)},
		{"/stats", "print out stats", TextPage(r.WriteText)},
	}, further...)
	slices.SortFunc(pages, func(a, b Page) int { return strings.Compare(a.Path, b.Path) })

	mux := http.NewServeMux()
	for _, p := range pages {
		mux.Handle(p.Path, p.Handler)
	}
	mux.Handle("/", TextPage(func(w io.Writer) error { return listPages(w, pages) }))
	return mux
}

func (s *Service) dumpRules(w io.Writer) error {
	if rules := s.Rules(); rules != nil {
		return rules.Dump(w)
	}
	return nil
}

func listPages(w io.Writer, pages []Page) error {
	for _, p := range pages {
		if _, err := fmt.Fprintf(w, "%s: %s\n", p.Path, p.About); err != nil {
			return err
		}
	}
	return nil
}

// TextPage serves what write writes as plain text, or 500 with its error. The
// text is complete before the first byte is sent, so that a slow reader holds
// nothing up.
func TextPage(write func(io.Writer) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", textPlain)
		_, _ = w.Write(text.Bytes()) // a client that is gone needs no answer
	})
}
