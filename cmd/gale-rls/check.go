package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

const checkHelp = `Usage: gale-rls check [-merge_domain_configs] FOLDER|FILE...

Loads rule files as the service does, and prints every error with its place.
All files of a folder are rules, whatever they are called; folders below it are
not looked into, dot files are left out. Exit 1 if there is an error.

Flags:
`

// check is the subcommand. It takes the flags of the checker of
// envoyproxy/ratelimit too.
func check(args, environ []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	dir := flags.String("config_dir", "", "another `folder` to check")
	merge := flags.Bool("merge_domain_configs", false, "several files may have rules for one domain (MERGE_DOMAIN_CONFIG)")
	if code, ok := parseFlags(flags, checkHelp, args, out, log); !ok {
		return code
	}
	paths := flags.Args()
	if *dir != "" {
		paths = append(paths, *dir)
	}
	if len(paths) == 0 {
		return usage(log, "check needs a folder or a file")
	}
	s, _, err := settings.FromEnv(environ)
	if err != nil {
		fmt.Fprintf(log, "error in the environment:\n%v\n", err)
		return 1
	}
	fmt.Fprintln(out, "checking rate limit configs...")
	files, err := ruleFiles(paths, out)
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	tree, err := loadFiles(files, s, *merge)
	if err != nil {
		for _, line := range errorLines(err) {
			fmt.Fprintln(out, "error loading rate limit configs: "+line)
		}
		return 1
	}
	fmt.Fprintf(out, "%d files, %d domains, %d limits\n", len(files), len(tree.Domains()), len(tree.Rules()))
	fmt.Fprintln(out, "all rate limit configs ok")
	return 0
}

// parseFlags parses args; when it returns false, the program ends with code.
func parseFlags(flags *flag.FlagSet, help string, args []string, out, log io.Writer) (code int, ok bool) {
	flags.SetOutput(io.Discard) // what goes wrong is said below
	err := flags.Parse(args)
	switch {
	case err == nil:
		return 0, true
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0, false
	default:
		fmt.Fprintf(log, "gale-rls %s: %v. gale-rls %[1]s --help tells what there is.\n", flags.Name(), err)
		return 2, false
	}
}

// loadFiles compiles files with the defaults of the environment.
func loadFiles(files []descriptors.File, s settings.Settings, merge bool) (*descriptors.Tree, error) {
	return descriptors.Load(files, nil, descriptors.Options{
		MergeDomains: merge || s.Source.MergeDomains,
		DefaultMode:  descriptors.Mode(s.Source.DefaultMode),
	})
}

// ruleFiles reads the files that paths name, and those of the folders.
func ruleFiles(paths []string, progress io.Writer) ([]descriptors.File, error) {
	var names []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("error opening %s: %w", p, err)
		}
		if !info.IsDir() {
			names = append(names, p)
			continue
		}
		fmt.Fprintln(progress, "loading config directory:", p)
		entries, err := os.ReadDir(p)
		if err != nil {
			return nil, fmt.Errorf("error opening directory %s: %w", p, err)
		}
		for _, e := range entries {
			full := filepath.Join(p, e.Name())
			if strings.HasPrefix(e.Name(), ".") || !isRuleFile(full) {
				continue
			}
			names = append(names, full)
		}
	}
	slices.Sort(names)
	var files []descriptors.File
	for _, name := range slices.Compact(names) {
		fmt.Fprintln(progress, "opening config file:", name)
		data, err := os.ReadFile(name)
		files = append(files, descriptors.File{Name: name, Data: data, Err: err})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no rule files in %s", strings.Join(paths, ", "))
	}
	return files, nil
}

// isRuleFile follows links, as ConfigMap mounts need it.
func isRuleFile(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode()&fs.ModeType == 0
}
