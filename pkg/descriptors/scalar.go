package descriptors

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// scalarType is what a scalar resolves to under YAML 1.1, the version that
// rule files have always been read with: `on` is true, `010` is eight.
type scalarType uint8

const (
	scalarText scalarType = iota
	scalarNull
	scalarBool
	scalarInt
	scalarFloat // also integers beyond int64: no rule may have either
)

// scalar is a resolved scalar. text is always what stands in the file.
type scalar struct {
	typ  scalarType
	text string
	b    bool
	i    int64
	f    float64
}

const quotedStyle = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// yamlFloat is the resolver's idea of a float that is not in its table.
var yamlFloat = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolve finds the type of a scalar node. An explicit tag that does not fit
// the text is an error, as is base64 that is none.
func resolve(n *yaml.Node) (scalar, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quotedStyle != 0 {
			return scalar{text: n.Value}, nil
		}
		return resolvePlain(n.Value), nil
	}
	var want scalarType
	switch n.Tag {
	case "!!binary":
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return scalar{}, errors.New("!!binary value contains invalid base64 data")
		}
		return scalar{text: string(data)}, nil
	case "!!null":
		want = scalarNull
	case "!!bool":
		want = scalarBool
	case "!!int":
		want = scalarInt
	case "!!float":
		want = scalarFloat
	default:
		return scalar{text: n.Value}, nil
	}
	s := resolvePlain(n.Value)
	if want == scalarFloat && s.typ == scalarInt {
		s.typ, s.f = scalarFloat, float64(s.i)
	}
	if s.typ != want {
		return scalar{}, fmt.Errorf("cannot decode `%s` as a %s", n.Value, n.Tag)
	}
	return s, nil
}

// resolvePlain resolves a scalar without quotes and tag.
func resolvePlain(text string) scalar {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return scalar{typ: scalarNull, text: text}
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return scalar{typ: scalarBool, text: text, b: true}
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return scalar{typ: scalarBool, text: text}
	case ".nan", ".NaN", ".NAN":
		return scalar{typ: scalarFloat, text: text, f: math.NaN()}
	case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF":
		return scalar{typ: scalarFloat, text: text, f: math.Inf(1)}
	case "-.inf", "-.Inf", "-.INF":
		return scalar{typ: scalarFloat, text: text, f: math.Inf(-1)}
	}
	if c := text[0]; c != '+' && c != '-' && c != '.' && (c < '0' || c > '9') {
		return scalar{text: text}
	}
	return resolveNumber(text)
}

func resolveNumber(text string) scalar {
	plain := strings.ReplaceAll(text, "_", "")
	if text[0] != '.' {
		if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
			return scalar{typ: scalarInt, text: text, i: i}
		}
		if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
			return scalar{typ: scalarFloat, text: text, f: float64(u)}
		}
	}
	if yamlFloat.MatchString(plain) {
		if f, err := strconv.ParseFloat(plain, 64); err == nil {
			return scalar{typ: scalarFloat, text: text, f: f}
		}
	}
	return scalar{text: text}
}

// String shows the resolved value as the reference's errors do.
func (s scalar) String() string {
	switch s.typ {
	case scalarNull:
		return "<nil>"
	case scalarBool:
		return strconv.FormatBool(s.b)
	case scalarInt:
		return strconv.FormatInt(s.i, 10)
	case scalarFloat:
		return strconv.FormatFloat(s.f, 'g', -1, 64)
	default:
		return s.text
	}
}
