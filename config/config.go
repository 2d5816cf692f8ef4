// Package config holds the rule files that gale-rls ships: the rules that it
// runs with when it is given none (rules/), and a commented tour of the
// language (tour/), which is not loaded.
package config

import "embed"

// Rules are the files in rules/.
//
//go:embed rules
var Rules embed.FS
