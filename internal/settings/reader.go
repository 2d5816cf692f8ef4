package settings

import (
	"fmt"
	"slices"
	"strings"
)

// Variable is one setting, as docs and suggestions need it.
type Variable struct {
	Name, Section string
	// Type is what is written in it: "duration", "true or false", …
	Type    string
	Default string
	Doc     string
	// NoEffect says that the variable is accepted and does nothing here.
	NoEffect bool
}

// Problem is a variable that cannot be used as it is.
type Problem struct {
	Name, Value string
	Why, WayOut string
	// Secret hides the value.
	Secret bool
}

// Error names the variable, its value, what is wrong and what to do.
func (p *Problem) Error() string {
	value := fmt.Sprintf("=%q", p.Value)
	if p.Secret && p.Value != "" {
		value = "=(hidden)"
	}
	return p.Name + value + " " + p.Why + "; " + p.WayOut
}

// reader looks variables up while it learns which there are.
type reader struct {
	env      map[string]string
	vars     []Variable
	problems []error
	notices  []string
	section  string
}

// newReader takes "NAME=value" strings, as os.Environ returns them. Of two with
// one name the last counts.
func newReader(environ []string) *reader {
	r := &reader{env: make(map[string]string, len(environ))}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			r.env[name] = value
		}
	}
	return r
}

func (r *reader) isSet(name string) bool {
	_, ok := r.env[name]
	return ok
}

func (r *reader) notice(format string, args ...any) {
	r.notices = append(r.notices, fmt.Sprintf(format, args...))
}

func (r *reader) problem(name, why, wayOut string) {
	r.problems = append(r.problems, &Problem{
		Name: name, Value: r.env[name], Why: why, WayOut: wayOut,
		Secret: isSecret(name) || strings.HasSuffix(name, "_URL") && strings.Contains(r.env[name], "@"),
	})
}

// isSecret tells variables whose value no log may show.
func isSecret(name string) bool {
	return strings.HasSuffix(name, "_AUTH") || strings.HasSuffix(name, "_PASSWORD")
}

// declare makes a variable known, and returns its value if it is set.
func (r *reader) declare(name, kind, def, doc string) (value string, set bool) {
	r.vars = append(r.vars, Variable{Name: name, Section: r.section, Type: kind, Default: def, Doc: doc})
	value, set = r.env[name]
	return value, set
}

// noEffect declares a variable of the reference that does nothing here.
func (r *reader) noEffect(name, why string) {
	r.vars = append(r.vars, Variable{Name: name, Section: r.section, Doc: why, NoEffect: true})
	if r.isSet(name) {
		r.notice("%s is set and has no effect here: %s", name, why)
	}
}

// unknown reports GALE_ variables that do not exist, and notices what looks
// like a misspelt variable of the reference.
func (r *reader) unknown() {
	names := make([]string, 0, len(r.env))
	for name := range r.env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if r.known(name) || r.serviceLink(name) {
			continue
		}
		near := r.nearest(name)
		switch {
		case strings.HasPrefix(name, "GALE_") && near != "":
			r.problem(name, "is no setting of gale-rls", "did you mean "+near+"? Correct or unset it")
		case strings.HasPrefix(name, "GALE_"):
			r.problem(name, "is no setting of gale-rls", "unset it; gale-rls --help lists the settings")
		case near != "" && !strings.HasPrefix(near, "GALE_"):
			r.notice("%s is set and is no setting; did you mean %s?", name, near)
		}
	}
}

func (r *reader) known(name string) bool {
	return slices.ContainsFunc(r.vars, func(v Variable) bool { return v.Name == name })
}

// serviceLink tells the variables that Kubernetes sets for a Service whose
// name begins like ours (GALE_RLS_PORT_8081_TCP_ADDR=…).
func (r *reader) serviceLink(name string) bool {
	for at := range name {
		rest := name[at:]
		if (strings.HasPrefix(rest, "_SERVICE_") || strings.HasPrefix(rest, "_PORT")) && r.isSet(name[:at]+"_SERVICE_HOST") {
			return true
		}
	}
	return false
}

// nearest returns the known variable that name most likely stands for, or "".
func (r *reader) nearest(name string) string {
	// Two slips in a long name are a misspelling; in a short one, another
	// word. GALE_ names belong to nobody else, so they may be further off.
	limit := 2
	if strings.HasPrefix(name, "GALE_") {
		limit = 4
	}
	if len(name) < 8 {
		return ""
	}
	best, at := "", limit+1
	for _, v := range r.vars {
		if d := distance(name, v.Name); d < at {
			best, at = v.Name, d
		}
	}
	return best
}

// distance is how many letters must be added, removed or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
