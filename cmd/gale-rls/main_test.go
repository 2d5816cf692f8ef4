package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files and docs/metrics.md")

// runs executes one command line without an environment.
func runs(args ...string) (code int, out, log string) {
	var o, l bytes.Buffer
	code = run(append([]string{"gale-rls"}, args...), nil, &o, &l)
	return code, o.String(), l.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it); got:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"check-good", []string{"check", "testdata/good"}, 0},
		{"check-flags-of-the-reference", []string{"check", "-config_dir", "testdata/good", "-merge_domain_configs"}, 0},
		{"check-one-file", []string{"check", "testdata/good/basic.yaml"}, 0},
		{"check-bad", []string{"check", "testdata/bad"}, 1},
		{"check-both", []string{"check", "testdata/good", "testdata/bad/two.yaml"}, 1},
		{"check-nothing-there", []string{"check", "testdata/absent"}, 1},
		{"check-no-path", []string{"check"}, 2},
		{"check-help", []string{"check", "--help"}, 0},
		{"client-help", []string{"client", "-h"}, 0},
		{"client-bad-descriptor", []string{"client", "-domain", "d", "-descriptors", "k"}, 2},
		{"client-nothing-asked", []string{"client"}, 2},
		{"explain-help", []string{"explain", "-help"}, 0},
		{"explain-nothing-asked", []string{"explain", "-domain", "d"}, 2},
		{"explain-levels", []string{"explain", "-config_dir", "testdata/good", "-domain", "shop", "-descriptors", "user=ann,path=/buy/1"}, 0},
		{"explain-several", []string{"explain", "-config_dir", "testdata/good", "-domain", "shop", "-descriptors", "user=vip", "-descriptors", "tenant=a.b", "-descriptors", "user=ann,path=/sell"}, 0},
		{"explain-too-deep", []string{"explain", "-config_dir", "testdata/good", "-domain", "shop", "-descriptors", "tenant=a,path=/"}, 0},
		{"explain-unknown-domain", []string{"explain", "-config_dir", "testdata/good", "-domain", "nowhere", "-descriptors", "a=b"}, 0},
		{"explain-bad-rules", []string{"explain", "-config_dir", "testdata/bad", "-domain", "shop", "-descriptors", "a=b"}, 1},
		{"help", []string{"--help"}, 0},
		{"unknown-command", []string{"launch"}, 2},
		{"unknown-flag", []string{"check", "-x"}, 2},
		{"serve-takes-no-arguments", []string{"serve", "now"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, log := runs(c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			golden(t, c.name+".txt", "$ gale-rls "+strings.Join(c.args, " ")+"\n"+out+log)
		})
	}
}

func TestVersionNamesTheBuild(t *testing.T) {
	if code, out, _ := runs("version"); code != 0 || !strings.HasPrefix(out, "gale-rls ") || !strings.Contains(out, " go1.") {
		t.Errorf("exit code %d, %q", code, out)
	}
}

func TestShippedRulesCanBeExplained(t *testing.T) {
	code, out, log := runs("explain", "-domain", "gale", "-descriptors", "hello=you")
	if code != 0 || !strings.Contains(out, "limit     2 per hour") {
		t.Errorf("exit code %d:\n%s%s", code, out, log)
	}
}

func TestBadSettingsRefuseToStart(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want []string
	}{
		{[]string{"PORT=x", "REDIS_TIMEOUT=5"}, []string{`PORT="x" is not a whole number`, `REDIS_TIMEOUT="5" is not a duration`}},
		{[]string{"LOG_FORMAT=json", "PORT=x"}, []string{`"level":"error"`, `PORT=\"x\" is not a whole number`}},
		{[]string{"RUNTIME_ROOT=/absent/rules", "RUNTIME_SUBDIRECTORY=x", "RUNTIME_WATCH_ROOT=false"},
			[]string{"cannot start", "unable to watch file (/absent/rules/x/config)", "create /absent/rules/x/config, or point RUNTIME_ROOT"}},
		{[]string{"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/absent/c", "GRPC_SERVER_TLS_KEY=/absent/k"},
			[]string{"failed to load TLS key pair (/absent/c,/absent/k)", "correct GRPC_SERVER_TLS_CERT"}},
		{[]string{"REDIS_URL=redis://user:hunter2@h:x/0"}, []string{"REDIS_URL=redis://***@h:x/0"}},
		{[]string{"REDIS_URL=h:1", "REDIS_TLS=true", "REDIS_TLS_CACERT=/absent/ca"}, []string{"/absent/ca", "correct REDIS_TLS_CLIENT_CERT"}},
	} {
		var out, log bytes.Buffer
		if code := run([]string{"gale-rls"}, c.env, &out, &log); code != 1 {
			t.Errorf("%s: exit code %d", c.env, code)
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: no %q in\n%s", c.env, want, log.String())
			}
		}
		if strings.Contains(log.String(), "hunter2") {
			t.Errorf("a password is shown:\n%s", log.String())
		}
	}
}

func TestCredentialsAreHidden(t *testing.T) {
	for address, want := range map[string]string{
		"redis://u:p@h:1/0":            "redis://***@h:1/0",
		"rediss://:p@p@h:1":            "rediss://***@h:1",
		"redis://h:1?password=p":       "redis://h:1?***",
		"u:p@h:1":                      "***@h:1",
		"h:1":                          "h:1",
		"/var/run/ratelimit.sock":      "/var/run/ratelimit.sock",
		"redis://u:p@h:1/0?username=u": "redis://***@h:1/0?***",
	} {
		if got := hideCredentials(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
