package arch

// room is a package of ours and what it may see of the others.
type room struct {
	// path is below the module, "cmd/gale-rls". A row may stand here before
	// its package does.
	path string
	// sees are the packages of ours that it may import, besides
	// internal/invariants, which everybody may. "..." at the end covers what
	// is below. Tests are exempt.
	sees []string
	// why says why it sees no more than that.
	why string
}

const everything = "..."

// rooms is the plan of the house, from the top down.
func rooms() []room {
	return []room{
		{"cmd/gale-rls", []string{everything},
			"the only place that constructs things, so it knows everybody"},
		{"integration", []string{everything},
			"tests of the whole, from outside"},
		{"integration/conformance", []string{"internal/testenv"},
			"speaks to the binary as Envoy does, and knows nothing of its inside"},

		{"pkg/rls", []string{"pkg/gale", "pkg/descriptors", "pkg/concurrency", "internal/stats"},
			"the door asks an interface for decisions: it knows no store, no file, no environment"},
		{"pkg/federation", []string{"pkg/gale", "pkg/concurrency"},
			"plugs in behind an interface of gale; rules and doors are not its business"},
		{"pkg/concurrency", []string{"pkg/gale"},
			"stands on the engine's contracts, below doors and regions"},

		{"pkg/gale/redisstore", []string{"pkg/gale"}, "a store knows its contract and its server"},
		{"pkg/gale/memstore", []string{"pkg/gale"}, "a store knows its contract"},
		{"pkg/gale/storetest", []string{"pkg/gale"}, "a suite for every store knows none of them"},
		{"pkg/gale/sim", []string{"pkg/gale", "pkg/gale/sizing", "pkg/gale/fair", "pkg/gale/memstore"},
			"runs the production core, and no server"},
		{"pkg/gale", []string{"pkg/gale/sizing", "pkg/gale/fair"},
			"the engine does not know rules, doors or stores: stores know it"},
		{"pkg/gale/sizing", nil, "pure mathematics"},
		{"pkg/gale/fair", nil, "pure mathematics"},

		{"pkg/descriptors", nil, "rules do not know the engine; cmd and rls join the two"},
		{"pkg/descriptors/filesource", []string{"pkg/descriptors"},
			"reads and watches files; what they mean is the package above"},

		{"config", nil, "the shipped rule files, embedded; data"},
		{"spec/machines", []string{"pkg/gale"},
			"searches the abstract machines and the production core; no store, no door"},
		{"spec/trilemma", nil, "pure mathematics"},

		{"internal/settings", []string{"pkg/descriptors"},
			"the environment as plain data; it may name the modes of a rule"},
		{"internal/stats", nil, "counters know nobody who counts"},
		{"internal/stats/mapping", nil, "names in, names out"},
		{"internal/stats/promsink", []string{"internal/stats", "internal/stats/mapping"},
			"a sink knows what it is told, not who counts"},
		{"internal/testenv", nil, "starts the built binary; linking it would hide what users run"},
		{"internal/arch", nil, "reads source, runs nothing"},
		{"internal/invariants", nil, "the ground floor"},
	}
}

// visitor is an outside library, and the only places that may import it in
// code that is not a test.
type visitor struct {
	// prefix is the beginning of an import path.
	prefix string
	// at are packages ("pkg/rls", "pkg/rls/...") or file names ("metrics.go").
	at  []string
	why string
}

func visitors() []visitor {
	return []visitor{
		{"google.golang.org/grpc", []string{"pkg/rls/...", "cmd/..."}, "the wire stops at the door"},
		{"google.golang.org/protobuf", []string{"pkg/rls/...", "cmd/..."}, "the wire stops at the door"},
		{"github.com/envoyproxy/", []string{"pkg/rls/...", "cmd/..."}, "the wire stops at the door"},
		{"github.com/redis/go-redis", []string{"pkg/gale/redisstore"},
			"one place to follow the library's changes"},
		{"github.com/prometheus/", []string{"metrics.go"},
			"what is measured can be read in one file of each package"},
		{"gopkg.in/yaml", []string{"pkg/descriptors", "internal/stats/mapping", "cmd/gale-rls"},
			"rule files are read in one place; stats reads the mapping file of operators, cmd a simulation's scenario"},
		{"github.com/fsnotify/", []string{"pkg/descriptors/filesource", "cmd/..."},
			"watching is for sources and certificates"},
		{"github.com/testcontainers/", []string{"internal/testenv"}, "a test's library"},
		{"github.com/moby/", []string{"internal/testenv"}, "a test's library"},
		{"testing", []string{"internal/testenv", "pkg/gale/storetest"},
			"test code does not travel with the binary"},
	}
}

// pure lists what has no clock, lock, log or socket of its own: it takes the
// time as an argument, so that the model checker and the simulator can run it.
func pure() []string {
	return []string{
		"pkg/gale/sizing/...", "pkg/gale/fair/...",
		"pkg/gale/ledger.go", "pkg/gale/holder.go", "pkg/gale/storeclock.go", "pkg/gale/lot.go",
	}
}

// impure is what a pure file must not import.
func impure() []string {
	return []string{"context", "log", "log/slog", "net", "net/http", "os", "sync", "sync/atomic"}
}

// maxLines bounds a file that is not a test: what is longer is two rooms.
const maxLines = 400

// longFiles are the exceptions to maxLines, with the reason.
func longFiles() map[string]string {
	return map[string]string{}
}

// realSleeps are the test files that may call time.Sleep without a synctest
// bubble, with the reason. Tests of real servers wait with
// testenv.Eventually instead.
func realSleeps() map[string]string {
	return map[string]string{
		"integration/conformance/conformance_test.go": "recorded scenarios contain pauses",
	}
}

// vagueNames are package names that say nothing about what is inside.
func vagueNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "types", "impl", "misc", "manager", "base"}
}
