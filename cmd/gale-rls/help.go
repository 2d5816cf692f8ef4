package main

import (
	_ "embed"
	"runtime"
	"runtime/debug"
)

//go:embed help.txt
var helpText string

// version names the build: the module's version, or the commit it was built
// from.
func version() string {
	v, commit := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	return "gale-rls " + v + commit + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
