package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/gale-rls/gale-rls/internal/settings"
	"github.com/gale-rls/gale-rls/pkg/descriptors"
)

const explainHelp = `Usage: gale-rls explain [-config_dir FOLDER] -domain D -descriptors k=v[,k=v...]

Tells, level by level, what the entries of a descriptor meet in the rules, and
why; then the limit, its counter's key and its mode. Without -config_dir the
rules are those that gale-rls ships.

  gale-rls explain -config_dir config/tour -domain tour -descriptors tenant=acme,path=/login

Flags:
`

func explain(args, environ []string, out, log io.Writer) int {
	flags := flag.NewFlagSet("explain", flag.ContinueOnError)
	dir := flags.String("config_dir", "", "`folder` or file of the rules")
	domain := flags.String("domain", "", "domain of the request")
	merge := flags.Bool("merge_domain_configs", false, "several files may have rules for one domain (MERGE_DOMAIN_CONFIG)")
	var asked descriptorFlag
	flags.Var(&asked, "descriptors", "one descriptor, as `key=value,key=value`; may be repeated")
	if code, ok := parseFlags(flags, explainHelp, args, out, log); !ok {
		return code
	}
	if len(asked) == 0 || *domain == "" {
		return usage(log, "explain needs -domain and -descriptors")
	}
	s, _, err := settings.FromEnv(environ)
	if err != nil {
		fmt.Fprintf(log, "error in the environment:\n%v\n", err)
		return 1
	}
	files, err := shippedRules()
	if *dir != "" {
		files, err = ruleFiles([]string{*dir}, io.Discard)
	}
	if err != nil {
		fmt.Fprintln(log, err)
		return 1
	}
	tree, err := loadFiles(files, s, *merge)
	if err != nil {
		for _, line := range errorLines(err) {
			fmt.Fprintln(log, "error loading rate limit configs: "+line)
		}
		return 1
	}
	for i, entries := range asked {
		if i > 0 {
			fmt.Fprintln(out)
		}
		explainOne(out, tree, s.Counting.KeyPrefix, *domain, entries)
	}
	return 0
}

func explainOne(out io.Writer, tree *descriptors.Tree, prefix, domain string, entries []descriptors.Entry) {
	fmt.Fprintf(out, "domain %q, descriptor %s\n", domain, spellEntries(entries))
	steps, match := tree.Explain(domain, entries)
	if !match.DomainKnown {
		fmt.Fprintf(out, "no limit: no file has rules for this domain; there are %s\n", strings.Join(tree.Domains(), ", "))
		return
	}
	for i, step := range steps {
		fmt.Fprintf(out, "%d. %s=%s: %s", i+1, step.Entry.Key, step.Entry.Value, step.How)
		if step.Matched != "" {
			fmt.Fprintf(out, " %s at %s", step.Matched, spellPosition(step.Position))
		}
		fmt.Fprintf(out, "\n   %s\n", step.Why)
	}
	rule := match.Rule
	if rule == nil {
		fmt.Fprintln(out, "no limit: the answer is OK, and nothing is counted")
		return
	}
	fmt.Fprintf(out, "rule      %s at %s\n", rule.Path, spellPosition(rule.Position))
	fmt.Fprintf(out, "limit     %s\n", spellLimit(rule))
	if rule.Unlimited {
		return
	}
	fmt.Fprintf(out, "key       %s<window start>\n", match.AppendKey(nil, prefix, domain, entries))
	stat := rule.StatName
	if stat == "" {
		stat = string(match.AppendStatName(nil, domain, entries))
	}
	fmt.Fprintf(out, "counted   ratelimit.service.rate_limit.%s.*\n", stat)
	mode, unavailable := rule.Gale.Mode, rule.Gale.OnUnavailable
	if mode == "" {
		mode = descriptors.ModeStrict
	}
	if unavailable == "" {
		unavailable = descriptors.OnUnavailableError
	}
	fmt.Fprintf(out, "mode      %s, on_unavailable %s\n", mode, unavailable)
}

func spellEntries(entries []descriptors.Entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = e.Key + "=" + e.Value
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func spellPosition(p descriptors.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

func spellLimit(r *descriptors.Rule) string {
	if r.Unlimited {
		return "unlimited: never refused, never counted"
	}
	text := fmt.Sprintf("%d per %s", r.RequestsPerUnit, strings.ToLower(r.Unit.String()))
	if r.Name != "" {
		text += fmt.Sprintf(", named %q", r.Name)
	}
	if r.Shadow {
		text += ", shadow: never refuses"
	}
	if r.Quota {
		text += ", quota: refuses only when all quotas of the request are over"
	}
	if len(r.Replaces) > 0 {
		text += ", replaces " + strings.Join(r.Replaces, ", ")
	}
	return text
}
