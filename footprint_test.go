package quorum_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the library brings to those who import it is part of its price: every
// module in their `go list -m all` is one that they update, scan and answer for.

// consumer makes a module as a user would, with these files, and returns its
// folder after `go mod tidy`. modules are the folders of the modules of ours that
// it may use.
func consumer(t *testing.T, goVersion string, modules []string, files map[string]string) string {
	t.Helper()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	mod := fmt.Sprintf("module example.com/consumer\n\ngo %s\n", goVersion)
	for _, m := range modules {
		path := strings.TrimSuffix(ours+"/"+m, "/.")
		mod += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", path, path, filepath.Join(root, m))
	}
	dir := t.TempDir()
	files = maps.Clone(files)
	files["go.mod"] = mod
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	goTool(t, dir, "mod", "tidy")
	return dir
}

// goTool runs the go command in a folder, out of the workspace, and returns what
// it printed.
func goTool(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

func TestR88Footprint(t *testing.T) {
	for _, c := range []struct {
		name, goVersion   string
		modules, packages []string
		most              int // modules in `go list -m all`, the consumer's own counted
	}{
		{"core", "1.25.0", []string{"."}, []string{".", "stores/memstore", "stores/filestore"}, 4},
		{"core and Redis", "1.26.0", []string{".", "stores/redisstore"}, []string{".", "stores/redisstore"}, 15},
		{"core and etcd", "1.26.0", []string{".", "stores/etcdstore"}, []string{".", "stores/etcdstore"}, 81},       // what etcd's own client asks for,
		{"core and Kubernetes", "1.26.0", []string{".", "stores/kubestore"}, []string{".", "stores/kubestore"}, 77}, // what client-go asks for
		{"core and PostgreSQL", "1.26.0", []string{".", "stores/pgstore"}, []string{".", "stores/pgstore"}, 19},
		{"core and SQLite", "1.26.0", []string{".", "stores/sqlitestore"}, []string{".", "stores/sqlitestore"}, 29}, // what the driver asks for, which is SQLite translated to Go
	} {
		t.Run(c.name, func(t *testing.T) {
			code := "package consumer\n"
			for _, p := range c.packages {
				code += fmt.Sprintf("\nimport _ %q\n", strings.TrimSuffix(ours+"/"+p, "/."))
			}
			dir := consumer(t, c.goVersion, c.modules, map[string]string{"consumer.go": code})
			modules := strings.Fields(goTool(t, dir, "list", "-m", "-f", "{{.Path}}", "all"))
			t.Logf("%d modules: %s", len(modules), strings.Join(modules, " "))
			if len(modules) > c.most {
				t.Errorf("a consumer gets %d modules, more than %d: %s", len(modules), c.most, strings.Join(modules, " "))
			}
			goTool(t, dir, "build", "./...")
		})
	}
}

func TestR88RootModuleRequiresLittle(t *testing.T) {
	var mod struct {
		Go      string
		Require []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(goTool(t, ".", "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Go != "1.25.0" {
		t.Errorf("the go directive is %s, want 1.25.0: a higher one shuts out users of older toolchains", mod.Go)
	}
	for _, r := range mod.Require {
		if !slices.Contains([]string{"golang.org/x/sync", "pgregory.net/rapid"}, r.Path) {
			t.Errorf("go.mod requires %s: a package that needs it lives in a module of its own", r.Path)
		}
	}
}
