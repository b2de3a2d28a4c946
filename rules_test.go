package quorum_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of this code base that a reader cannot be expected to remember, so
// a test does. Each failure says what to do instead.

const ours = "github.com/quorumlock/quorum"

// layer is a row of the table of who may import whom. Packages of ours are
// named by their folder; "." is package quorum itself.
type layer struct {
	dir     string   // a folder, or with /* all the folders in it
	own     []string // packages of ours that its code may import
	tests   []string // and these, in its tests
	std     []string // packages of the standard library; nil is any
	others  []string // other modules, for code; nil is none in the root module, any in a module of its own
	instead string   // how to do without
}

var (
	pureStd = []string{"cmp", "encoding/binary", "errors", "fmt", "math", "math/bits", "slices", "sort", "strconv", "strings", "time"}

	pureInstead = "it is a pure value: it takes an event and a time and returns what to do; " +
		"goroutines, clocks, contexts and randomness belong to the driver (driver.go) or the simulator"
	storeInstead = "a store speaks the contract of package quorum; take what you need from a Request, " +
		"or run the model by internal/modelstore if the store lives in this process"
	trialInstead = "it compares the Redis store with the model, in tests"
)

// layers is the table. The first row that fits a folder counts.
var layers = []layer{
	{dir: "clock", instead: "the clock is at the bottom and knows nothing of ours"},
	{dir: "internal/core", own: []string{"clock"}, tests: []string{"internal/model"}, std: pureStd, instead: pureInstead},
	{dir: "internal/model", own: []string{"clock", "internal/core"}, std: pureStd, instead: pureInstead},
	{dir: "internal/sim", own: []string{"clock", "internal/core", "internal/model"},
		instead: "the simulator runs the protocol on its own clock and choices, so that a seed repeats exactly"},
	{dir: "quorumsim", own: []string{"clock", "internal/core", "internal/model", "internal/sim"},
		instead: "a user's job runs in the simulated world, where nothing is real"},
	{dir: "internal/simpage", own: []string{"internal/core", "internal/sim"},
		instead: "it draws what a simulated run left, and runs nothing"},
	{dir: "internal/modelstore", own: []string{".", "clock", "internal/core", "internal/model"}, tests: []string{"storetest"},
		instead: "it turns the model into a store, for stores that live in this process"},
	{dir: "internal/alarm", instead: "it bounds calls and knows none"},
	{dir: "internal/waitlist", own: []string{"internal/core", "internal/model"}, instead: "it is text for the model; what is kept where is the stores'"},
	{dir: "internal/platform", own: []string{".", "clock", "internal/model"}, instead: "it knows the machine and no store"},
	{dir: "internal/acceptance", own: []string{".", "storetest"}, instead: "it knows stores by their contract, and is given them"},
	{dir: "internal/rwtest", own: []string{"."}, instead: "it is given Lockers"},
	{dir: "internal/mixed", own: []string{"*"}},
	{dir: "internal/testserver", instead: "it starts servers and knows nothing of locks"},
	{dir: "storetest", own: []string{".", "clock", "internal/model", "internal/modelstore"}, tests: []string{"internal/core", "stores/memstore"},
		instead: "the suite checks any store against the model, and must not know one"},
	{dir: "stores/redisstore/internal/trial", own: []string{".", "internal/core", "internal/model", "stores/redisstore"}, instead: trialInstead},
	{dir: "stores/redisstore/minitest", tests: []string{".", "stores/redisstore", "stores/redisstore/internal/trial", "storetest"}, instead: trialInstead},
	{dir: "stores/etcdstore", own: []string{".", "internal/core", "internal/model", "internal/waitlist"}, tests: []string{"internal/acceptance", "storetest", "internal/testserver"},
		instead: "it decides by the model and writes to etcd"},
	{dir: "stores/nullstore", own: []string{"."}, tests: []string{"stores/memstore"}, instead: storeInstead},
	{dir: "stores/*", own: []string{".", "clock", "internal/alarm", "internal/platform", "internal/model", "internal/modelstore", "internal/waitlist"},
		tests: []string{"internal/core", "internal/acceptance", "internal/rwtest", "storetest", "internal/testserver", "fence", "fence/fencetest"}, instead: storeInstead},
	{dir: "fence/fencetest", own: []string{"fence"}, instead: "it checks a guard and needs nothing else"},
	{dir: "fence", tests: []string{".", "stores/memstore", "fence/fencetest"}, instead: "a guard needs a token and nothing else"},
	{dir: "config", own: []string{"."}, tests: []string{"stores/memstore"}, instead: "it is given openers"},
	{dir: "mw/watermillmw/rabbittest", tests: []string{".", "internal/testserver", "mw", "mw/watermillmw", "stores/redisstore"}, instead: "it shows the middleware on real servers"},
	{dir: "mw/watermillmw", own: []string{".", "mw"}, tests: []string{"clock", "stores/memstore", "storetest"}, instead: "it is given a Locker"},
	{dir: "mw", own: []string{"."}, tests: []string{"clock", "stores/memstore", "storetest"}, instead: "it is given a Locker"},
	{dir: ".", own: []string{"clock", "internal/alarm", "internal/core"}, others: []string{"golang.org/x/sync"},
		tests:   []string{"internal/model", "internal/modelstore", "internal/rwtest", "internal/sim", "internal/testserver", "stores/memstore", "stores/filestore", "storetest", "fence"},
		instead: "package quorum must not bring a store, a client or the simulator to its users"},
	{dir: "cmd/*", own: []string{"*"}},
	{dir: "internal/doctest", own: []string{"*"}},
	{dir: "bench", own: []string{"*"}},
}

// testOnly are the modules that tests of the root module may import.
var testOnly = []string{"pgregory.net/rapid"}

// pure are the packages in which a seed must repeat exactly.
var pure = []string{"internal/core", "internal/model", "internal/sim", "quorumsim"}

// source is one Go file of the tree.
type source struct {
	path string // from the root, with slashes
	dir  string
	test bool
	fset *token.FileSet
	file *ast.File
	text []byte
}

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// sources parses every Go file of every module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, name := range tree(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), fset, file, text})
	}
	return all
}

// tree lists the files of the repository but hidden folders and testdata.
func tree(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := len(d.Name()) > 1 && d.Name()[0] == '.' && d.Name() != ".ci"
		if d.IsDir() && (hidden || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && d.Name() != ".git" { // which is a file in a second work tree
			all = append(all, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRulesImports(t *testing.T) {
	for _, s := range sources(t) {
		i := slices.IndexFunc(layers, func(l layer) bool { return fits(l.dir, s.dir) })
		if i < 0 {
			t.Errorf("%s: no row of the table in rules_test.go says what %s may import: add one", s.path, s.dir)
			continue
		}
		for _, spec := range s.file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if why := layers[i].forbids(s, imported); why != "" {
				t.Errorf("%s:%d: imports %s: %s", s.path, s.line(spec), imported, why)
			}
		}
	}
}

// fits reports whether a folder is the pattern's, or beneath it.
func fits(pattern, dir string) bool {
	base, all := strings.CutSuffix(pattern, "/*")
	if !all {
		return dir == pattern || pattern != "." && strings.HasPrefix(dir, pattern+"/")
	}
	return strings.HasPrefix(dir, base+"/")
}

// folder turns the path of a package of ours into its folder.
func folder(imported string) string {
	if imported == ours {
		return "."
	}
	return strings.TrimPrefix(imported, ours+"/")
}

// forbids says why a file of the layer may not import a package, or nothing.
func (l layer) forbids(s source, imported string) string {
	if imported == ours || strings.HasPrefix(imported, ours+"/") {
		target := folder(imported)
		itself := target == s.dir || strings.HasPrefix(target, s.dir+"/internal/")
		if itself || slices.Contains(l.own, target) || slices.Contains(l.own, "*") || s.test && slices.Contains(l.tests, target) {
			return ""
		}
		return l.instead
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		if l.std == nil || s.test || slices.Contains(l.std, imported) {
			return ""
		}
		return l.instead
	}
	if inOwnModule(s.dir) {
		return ""
	}
	allowed := l.others
	if s.test {
		allowed = append(slices.Clone(allowed), testOnly...)
	}
	if slices.ContainsFunc(allowed, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
		return ""
	}
	return "a package that needs another module lives in a module of its own, so that nobody gets it who does not use it"
}

// inOwnModule reports whether a folder belongs to a nested module.
func inOwnModule(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

// A file holds one idea, and a function fits a screen or two. Tests list cases
// and may be longer.
func TestRulesSize(t *testing.T) {
	for _, s := range sources(t) {
		fileMax, funcMax := 330, 75 // about 300 and 70
		if s.test || fits("storetest", s.dir) {
			fileMax, funcMax = 500, 130
		}
		if n := bytes.Count(s.text, []byte("\n")); n > fileMax {
			t.Errorf("%s has %d lines, more than %d: split it by topic, each file named after its own", s.path, n, fileMax)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.line(f) + 1; n > funcMax {
				t.Errorf("%s:%d: %s has %d lines, more than %d: give its parts names", s.path, s.line(f), f.Name.Name, n, funcMax)
			}
		}
	}
}

// waits are calls that let real time pass or read it.
var waits = regexp.MustCompile(`^time\.(Now|Since|Until|After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)$`)

// globalRand is randomness that no seed repeats.
var globalRand = regexp.MustCompile(`^rand\.(Int|Uint|Float|Perm|Shuffle|N$|Exp|Norm|Read)`)

// Pure packages repeat exactly. Ranging over a map, the other source of
// disorder, needs types: see TestRulesPureMaps.
func TestRulesPure(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains(pure, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s:%d: a go statement: return a command and let the driver start it", s.path, s.line(n))
			case *ast.SelectStmt, *ast.ChanType:
				t.Errorf("%s:%d: a channel: return a command and let the driver wait", s.path, s.line(n))
			case *ast.SelectorExpr:
				switch name := selector(n); {
				case waits.MatchString(name):
					t.Errorf("%s:%d: %s: take the instant as an argument", s.path, s.line(n), name)
				case globalRand.MatchString(name):
					t.Errorf("%s:%d: %s: draw from the choices that were given", s.path, s.line(n), name)
				}
			}
			return true
		})
	}
}

// sleepers are the files that may poll with time.Sleep, because what they wait
// for is a process of its own that tells nobody when it is done.
var sleepers = regexp.MustCompile(`^((cmd/quorum|stores/(redis|etcd|pg|consul)store|internal/testserver)/.*_test\.go|storetest/call\.go|internal/acceptance/store\.go|internal/mixed/.*_test\.go)$`)

func TestRulesNoSleep(t *testing.T) {
	for _, s := range sources(t) {
		if sleepers.MatchString(s.path) || s.test && importsSynctest(s) {
			continue
		}
		var bubbles []ast.Node
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && s.test && makesBubble(call) {
				bubbles = append(bubbles, call)
			}
			sel, ok := n.(*ast.SelectorExpr)
			inBubble := slices.ContainsFunc(bubbles, func(b ast.Node) bool { return n != nil && b.Pos() <= n.Pos() && n.End() <= b.End() })
			if ok && selector(sel) == "time.Sleep" && !inBubble {
				t.Errorf("%s:%d: time.Sleep: in a test use a testing/synctest bubble or wait for the event itself; "+
					"elsewhere a timer beside the context", s.path, s.line(n))
			}
			return true
		})
	}
}

func importsSynctest(s source) bool {
	return slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

// makesBubble reports whether a call is of a function that runs its argument in
// a testing/synctest bubble: by convention its name says so.
func makesBubble(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && strings.HasSuffix(id.Name, "Bubble")
}

// selector returns "package.Name", or nothing where it is not that simple.
func selector(s *ast.SelectorExpr) string {
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// A decision that takes more than a page is not decided yet.
func TestRulesDecisionRecords(t *testing.T) {
	records, err := filepath.Glob("docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(records) == 0 {
		t.Fatal("docs/decisions has no record")
	}
	for _, name := range records {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^\d{3}-[a-z0-9-]+\.md$`).MatchString(filepath.Base(name)) {
			t.Errorf("%s: name it NNN-title.md", name)
		}
		if n := bytes.Count(text, []byte("\n")); n > 40 {
			t.Errorf("%s has %d lines, more than 40", name, n)
		}
	}
}

// A path of somebody's machine works on no other.
func TestRulesNoMachinePath(t *testing.T) {
	path := regexp.MustCompile(`(^|[\s"'=(` + "`" + `])/(work|root|home|Users)/[a-zA-Z0-9]`)
	for _, name := range tree(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // a binary
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := path.FindString(line); found != "" {
				t.Errorf("%s:%d: %q: name it from the root of the repository", name, i+1, strings.TrimSpace(found))
			}
		}
	}
}

// Whoever reads the code must be able to know every goroutine, who ends it and
// when. So the table in CONTRIBUTING.md names each file that starts one, and
// nothing else does.
func TestRulesGoroutineTable(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Goroutines\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no section Goroutines")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_/]+\\.go)`").FindAllStringSubmatch(section, -1) {
		listed[m[1]] = true
	}
	starts := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := startsGoroutine(n); what != "" {
				starts[s.path] = true
				if !listed[s.path] {
					t.Errorf("%s:%d: %s starts a goroutine that the table in CONTRIBUTING.md does not name", s.path, s.line(n), what)
				}
			}
			return true
		})
	}
	for name := range listed {
		if !starts[name] {
			t.Errorf("CONTRIBUTING.md: the table of goroutines names %s, which starts none", name)
		}
	}
}

// startsGoroutine says how a node starts a goroutine, or nothing.
func startsGoroutine(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		if name := selector(sel); name == "context.AfterFunc" || name == "time.AfterFunc" {
			return name
		}
		if sel.Sel.Name == "Go" && len(n.Args) == 1 { // of a sync.WaitGroup or an errgroup.Group; clock.Go takes nothing
			return fmt.Sprintf("a call of %s", sel.Sel.Name)
		}
	}
	return ""
}
