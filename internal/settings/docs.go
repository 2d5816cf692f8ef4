package settings

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Variables returns every setting, in the order of the docs.
func Variables() []Variable {
	r := newReader(nil)
	r.read()
	return slices.DeleteFunc(r.vars, func(v Variable) bool { return v.Section == "" })
}

// WriteDocs writes docs/configuration.md.
func WriteDocs(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, `# Settings

<!-- Written from internal/settings; `+"`go test ./internal/settings -update`"+` writes it again. -->

gale-rls is set by environment variables. They are those of
[envoyproxy/ratelimit](https://github.com/envoyproxy/ratelimit), and our own,
which begin with `+"`GALE_`"+`. With none of them it runs: memory store, the shipped
rules, ports 8081 (gRPC), 8080 (HTTP) and 6070 (debug).

- true or false: `+"`true`, `false`, `1`, `0`, `t`, `f`"+`. Durations have a unit: `+"`500ms`, `10s`, `1h`"+`.
- A variable that is set but empty is wrong, unless it is text.
- Everything that is wrong is reported at once, and nothing starts.
- An unknown `+"`GALE_`"+` variable is an error; a variable that has no effect is named at the start.
`)
	section := ""
	for _, v := range Variables() {
		if v.NoEffect {
			continue
		}
		if v.Section != section {
			section = v.Section
			fmt.Fprintf(b, "\n## %s\n\n| Variable | Value | Default | Meaning |\n|---|---|---|---|\n", section)
		}
		def := ""
		if v.Default != "" {
			def = "`" + v.Default + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", v.Name, v.Type, def, v.Doc)
	}
	fmt.Fprint(b, "\n## Accepted, without effect\n\nA notice at the start says so when one of these is set.\n\n| Variable | Why |\n|---|---|\n")
	for _, v := range Variables() {
		if v.NoEffect {
			fmt.Fprintf(b, "| `%s` | %s |\n", v.Name, strings.ToUpper(v.Doc[:1])+v.Doc[1:])
		}
	}
	return b.Flush()
}
