// Command gale-rls is an Envoy rate-limit service. See gale-rls --help.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	os.Exit(run(os.Args, os.Environ(), os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(args, environ []string, out, log io.Writer) int {
	// The image of envoyproxy/ratelimit ignores its arguments, and some
	// deployments give it some.
	if len(args) < 2 || filepath.Base(args[0]) == "ratelimit" {
		return serve(environ, log)
	}
	name, rest := args[1], args[2:]
	switch name {
	case "serve":
		if len(rest) > 0 {
			return usage(log, "serve takes no arguments; it is set by the environment")
		}
		return serve(environ, log)
	case "check":
		return check(rest, environ, out, log)
	case "client":
		return client(rest, out, log)
	case "explain":
		return explain(rest, environ, out, log)
	case "simulate":
		return simulate(rest, out, log)
	case "version", "-version", "--version":
		fmt.Fprintln(out, version())
		return 0
	case "help", "-help", "--help", "-h":
		fmt.Fprint(out, helpText)
		return 0
	default:
		return usage(log, fmt.Sprintf("%q is no command", name))
	}
}

func usage(log io.Writer, problem string) int {
	fmt.Fprintf(log, "gale-rls: %s. gale-rls --help tells what there is.\n", problem)
	return 2
}
