package stats

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Mogrifier rewrites a name that matches Pattern, and takes tags from it.
type Mogrifier struct {
	Pattern *regexp.Regexp
	// Name and the values of Tags may hold $0, $1, … for the groups.
	Name string
	Tags map[string]string
}

// DogStatsdConfig says where a DogStatsD agent listens.
type DogStatsdConfig struct {
	Address   string // host:port, UDP
	ExtraTags map[string]string
	// Mogrifiers are tried in order; the first that matches counts.
	Mogrifiers []Mogrifier
	Log        *slog.Logger
}

// NewDogStatsd returns a sink that sends "name:1|c|#key:value" lines over UDP.
func NewDogStatsd(c DogStatsdConfig) Sink {
	d := &dogStatsd{conn: newLineConn("udp", c.Address, c.Log), mogrifiers: c.Mogrifiers, known: make(map[string]ddName)}
	for _, k := range slices.Sorted(maps.Keys(c.ExtraTags)) {
		d.tags = append(d.tags, ddTag(k, c.ExtraTags[k]))
	}
	return d
}

// maxKnownNames bounds the memory of what names became; when it is full, it
// starts anew.
const maxKnownNames = 4 * DefaultMaxSeries

type dogStatsd struct {
	conn       *lineConn
	tags       []string
	mogrifiers []Mogrifier
	known      map[string]ddName
	line       []byte
}

// ddName is what a statsd name became.
type ddName struct{ name, tags string }

func (d *dogStatsd) Write(m Sample) {
	n, ok := d.known[string(m.Name)]
	if !ok {
		n = d.rewrite(string(m.Name))
		if len(d.known) >= maxKnownNames {
			clear(d.known)
		}
		d.known[string(m.Name)] = n
	}
	d.line = append(d.line[:0], n.name...)
	d.line = append(appendValue(d.line, m), n.tags...)
	d.conn.line(append(d.line, '\n'))
}

func (d *dogStatsd) Flush() { d.conn.flush() }

func (d *dogStatsd) Close(ctx context.Context) error { return d.conn.close(ctx) }

func (d *dogStatsd) rewrite(name string) ddName {
	tags := slices.Clone(d.tags)
	for _, m := range d.mogrifiers {
		groups := m.Pattern.FindStringSubmatch(name)
		if groups == nil {
			continue
		}
		name = cleanName(expand(m.Name, groups))
		for _, k := range slices.Sorted(maps.Keys(m.Tags)) {
			tags = append(tags, ddTag(k, expand(m.Tags[k], groups)))
		}
		break
	}
	if len(tags) == 0 {
		return ddName{name: name}
	}
	return ddName{name: name, tags: "|#" + strings.Join(tags, ",")}
}

// ddTag spells a tag; what would end it or the line becomes '_'.
func ddTag(key, value string) string {
	clean := strings.NewReplacer(",", "_", "|", "_", "\n", "_", "\r", "_")
	return clean.Replace(key) + ":" + clean.Replace(value)
}

var groupReference = regexp.MustCompile(`\$\d+`)

// expand replaces $n by the group; a group that is not there is empty.
func expand(template string, groups []string) string {
	return groupReference.ReplaceAllStringFunc(template, func(ref string) string {
		if n, err := strconv.Atoi(ref[1:]); err == nil && n < len(groups) {
			return groups[n]
		}
		return ""
	})
}
