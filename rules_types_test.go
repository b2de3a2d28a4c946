package quorum_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// typed is a package with its types.
type typed struct {
	path  string
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// typecheck loads the packages that match patterns, without their tests. The
// packages that they import come from the build cache, compiled.
func typecheck(t *testing.T, patterns ...string) []typed {
	t.Helper()
	args := append([]string{"list", "-e", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly"}, patterns...)
	out, err := exec.Command("go", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	var wanted []listed
	export := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		export[l.ImportPath] = l.Export
		if !l.DepOnly && len(l.GoFiles) > 0 {
			wanted = append(wanted, l)
		}
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	var all []typed
	for _, l := range wanted {
		p := typed{path: l.ImportPath, fset: fset, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range l.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, file)
		}
		p.types, err = (&types.Config{Importer: compiled}).Check(l.ImportPath, fset, p.files, p.info)
		if err != nil {
			t.Fatalf("type-check %s: %v", l.ImportPath, err)
		}
		all = append(all, p)
	}
	return all
}

// A range over a map comes in another order each time, so that no seed repeats.
func TestRulesPureMaps(t *testing.T) {
	var patterns []string
	for _, dir := range pure {
		patterns = append(patterns, ours+"/"+dir+"/...") // one that matches nothing is left out
	}
	for _, p := range typecheck(t, patterns...) {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				loop, ok := n.(*ast.RangeStmt)
				if !ok {
					return true
				}
				if _, isMap := p.info.TypeOf(loop.X).Underlying().(*types.Map); isMap {
					t.Errorf("%s: range over a map: keep a sorted slice", p.fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

// booleans are the only exported functions that may return a bool, by package.
// None of them takes, extends, releases or inspects a lock: there a bool would
// leave out why, and "held elsewhere" would look like "the stores are down".
var booleans = map[string][]string{
	".": {
		"As",              // finds an ability
		"RefusedError.Is", // the contract of package errors
		"OpError.Is", "LostError.Is",
		"Strategy.Met", "Votes.Has",
		"Async.Begin", // whether it took the call; how that ends, Call.End says
	},
	"stores/redisstore": {"Store.Begin"},
}

func TestR04NoOutcomeIsABool(t *testing.T) {
	for _, p := range typecheck(t, ours, ours+"/stores/...", ours+"/internal/modelstore") {
		dir := folder(p.path)
		for _, f := range exportedFuncs(p.types) {
			for i := range f.sig.Results().Len() {
				basic, ok := f.sig.Results().At(i).Type().Underlying().(*types.Basic)
				if ok && basic.Kind() == types.Bool && !slices.Contains(booleans[dir], f.name) {
					t.Errorf("%s: %s returns a bool: return an error that says which of the outcomes it is, "+
						"or, if it decides nothing about a lock, name it in rules_types_test.go", dir, f.name)
				}
			}
		}
	}
}

type exportedFunc struct {
	name string
	sig  *types.Signature
}

// exportedFuncs lists the functions of a package and the methods of its
// exported types, interfaces too.
func exportedFuncs(p *types.Package) []exportedFunc {
	var all []exportedFunc
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Func:
			if o.Exported() {
				all = append(all, exportedFunc{name, o.Signature()})
			}
		case *types.TypeName:
			if !o.Exported() || o.IsAlias() {
				continue
			}
			typ := o.Type()
			if !types.IsInterface(typ) {
				typ = types.NewPointer(typ)
			}
			for m := range types.NewMethodSet(typ).Methods() {
				if f := m.Obj().(*types.Func); f.Exported() {
					all = append(all, exportedFunc{name + "." + f.Name(), f.Signature()})
				}
			}
		}
	}
	return all
}
