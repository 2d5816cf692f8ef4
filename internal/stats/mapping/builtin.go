package mapping

import (
	"bytes"
	_ "embed"
)

//go:embed builtin.yaml
var builtIn []byte

// BuiltIn returns the mapping that is used without a file. With millis,
// response times stay in milliseconds.
func BuiltIn(millis bool) *Mapping {
	text := builtIn
	if millis {
		text = bytes.ReplaceAll(text, []byte("    scale: 0.001\n"), nil)
	}
	m, err := Parse(text)
	if err != nil {
		panic("the built-in mapping: " + err.Error()) // a test parses it
	}
	return m
}
