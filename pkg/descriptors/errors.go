package descriptors

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one defect of a rule file.
type Error struct {
	File         string
	Line, Column int    // from 1; 0 is unknown
	Path         string // of the descriptor ("domain.key_value.key"), "" outside of one
	Msg          string // begins with the text of envoyproxy/ratelimit where that has one
}

// Error returns "<file>: <message> (line L, column C, descriptor P)".
func (e *Error) Error() string {
	var where []string
	if e.Line > 0 {
		where = append(where, fmt.Sprintf("line %d", e.Line))
	}
	if e.Column > 0 {
		where = append(where, fmt.Sprintf("column %d", e.Column))
	}
	if e.Path != "" {
		where = append(where, "descriptor "+e.Path)
	}
	if len(where) == 0 {
		return e.File + ": " + e.Msg
	}
	return e.File + ": " + e.Msg + " (" + strings.Join(where, ", ") + ")"
}

// Errors are all defects of all files, by file name and place.
type Errors []*Error

// Error returns one line for each defect.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each *Error.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// Files returns the names of the files that have defects, sorted, each once.
func (e Errors) Files() []string {
	var names []string
	for _, one := range e {
		names = append(names, one.File)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (e Errors) sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// place is where something stands in its file; zero is unknown.
type place struct{ line, column int }

// placed is a value with its place.
type placed[T any] struct {
	v  T
	at place
}

// report gathers the defects of one file.
type report struct {
	file   string
	errors Errors
}

func (r *report) add(at place, path, format string, args ...any) {
	r.errors = append(r.errors, &Error{
		File: r.file, Line: at.line, Column: at.column, Path: path,
		Msg: fmt.Sprintf(format, args...),
	})
}
