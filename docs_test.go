package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/testserver"
)

// Every Go block of README.md and docs/ is completed into a program, vetted and
// run, so that what a reader copies works. How a block is completed:
//
//   - one that begins with a package clause is a file as it stands;
//   - one of declarations is a file that lacks its package clause and imports,
//     run by go test if it declares a test;
//   - one of statements is the body of a function that has ctx and returns an
//     error, and may use what the hidden code before it declares.
//
// A comment right before a block, which Markdown does not show, changes that:
//
//	<!-- doctest: hidden          code that comes before the block: declarations
//	...                           or statements
//	-->
//	<!-- doctest: vet only: why   vetted and not run
//	<!-- doctest: skip: why       neither; shell blocks too
//
// The hosts redis-a, redis-b and redis-c stand for real servers. A block of
// statements may end by a comment "// Output:" with what it prints. Shell blocks:
// see TestR85ShellBlocksOfTheDocs.

// block is a fenced code block.
type block struct {
	file     string
	line     int
	language string
	code     string
	hidden   []string
	vetOnly  string // why
	skip     string // why
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

// blocks extracts the fenced blocks of a page, each with the comments before it.
func blocks(file, text string) ([]block, error) {
	var all []block
	lines := strings.Split(text, "\n")
	var next block
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		language, fence := strings.CutPrefix(line, "```")
		comment, marked := strings.CutPrefix(line, "<!-- doctest: ")
		switch {
		case fence:
			next.file, next.line, next.language = file, i+1, language
			var code []string
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				code = append(code, lines[i])
			}
			next.code = strings.Join(code, "\n")
			all, next = append(all, next), block{}
		case marked:
			for !strings.HasSuffix(comment, "-->") && i+1 < len(lines) {
				i++
				comment += "\n" + lines[i]
			}
			if err := next.mark(strings.TrimSpace(strings.TrimSuffix(comment, "-->"))); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
		case line != "":
			next = block{}
		}
	}
	return all, nil
}

// mark takes a comment of the block.
func (b *block) mark(comment string) error {
	kind, rest, _ := strings.Cut(comment, "\n")
	if kind == "hidden" {
		b.hidden = append(b.hidden, rest)
		return nil
	}
	kind, why, _ := strings.Cut(comment, ": ")
	if strings.TrimSpace(why) == "" {
		return fmt.Errorf("doctest %q gives no reason", kind)
	}
	switch kind {
	case "vet only":
		b.vetOnly = why
	case "skip":
		b.skip = why
	default:
		return fmt.Errorf("doctest %q is none of hidden, vet only, skip", kind)
	}
	return nil
}

// imports are the packages that a fragment may use without importing them.
var imports = map[string]string{
	"quorum": ours, "clock": ours + "/clock", "storetest": ours + "/storetest", "fence": ours + "/fence", "mw": ours + "/mw", "config": ours + "/config",
	"nullstore": ours + "/stores/nullstore", "memstore": ours + "/stores/memstore", "filestore": ours + "/stores/filestore", "redisstore": ours + "/stores/redisstore",
	"pgstore": ours + "/stores/pgstore", "pgxpool": "github.com/jackc/pgx/v5/pgxpool",
	"etcdstore": ours + "/stores/etcdstore", "clientv3": "go.etcd.io/etcd/client/v3",
	"sqlitestore": ours + "/stores/sqlitestore",
	"redis":       "github.com/redis/go-redis/v9",
	"watermillmw": ours + "/mw/watermillmw", "watermill": "github.com/ThreeDotsLabs/watermill", "message": "github.com/ThreeDotsLabs/watermill/message",
	"atomic": "sync/atomic", "context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "httptest": "net/http/httptest", "log": "log",
	"os": "os", "slog": "log/slog", "sql": "database/sql", "strings": "strings", "sync": "sync", "synctest": "testing/synctest",
	"testing": "testing", "time": "time",
}

// program completes a Go block. It returns the file's name and text, and whether
// it is to be run and how: "run", "test" or nothing.
func (b block) program() (name, text, how string, err error) {
	if strings.HasPrefix(strings.TrimSpace(b.code), "package ") {
		return "main.go", b.code, "run", nil
	}
	var declarations, body string
	for _, part := range append(slices.Clone(b.hidden), b.code) {
		if _, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+part, 0); err == nil {
			declarations += part + "\n"
		} else {
			body += part + "\n"
		}
	}
	name, how = "main.go", "run"
	if regexp.MustCompile(`(?m)^func (Test|Example)`).MatchString(declarations) {
		name, how = "block_test.go", "test"
	}
	complete := func(tail string) (*ast.File, error) {
		text = declarations
		if how == "run" {
			text += "func example(ctx context.Context) (err error) {\n" + body + tail + "}\n" + exampleMain
		}
		return parser.ParseFile(token.NewFileSet(), b.String(), "package main\n"+text, 0)
	}
	file, err := complete("")
	if err == nil && !returns(file) {
		file, err = complete("return nil\n")
	}
	if err != nil {
		return "", "", "", err
	}
	var head strings.Builder
	head.WriteString("package main\n\n")
	for i, id := range file.Unresolved {
		path, known := imports[id.Name]
		seen := slices.ContainsFunc(file.Unresolved[:i], func(other *ast.Ident) bool { return other.Name == id.Name })
		if known && !seen {
			fmt.Fprintf(&head, "import %s %q\n", id.Name, path)
		}
	}
	return name, head.String() + "\n" + text, how, nil
}

// exampleMain runs the body of a fragment, bounded.
const exampleMain = `
func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := example(ctx); err != nil {
		log.Fatal(err)
	}
}
`

// returns reports whether the function example ends by a return.
func returns(file *ast.File) bool {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "example" && len(f.Body.List) > 0 {
			_, ok := f.Body.List[len(f.Body.List)-1].(*ast.ReturnStmt)
			return ok
		}
	}
	return false
}

// withServers replaces the hosts of the pages by real servers, new for each block:
// a server knows the set of stores that it is in.
func withServers(t *testing.T, code string) string {
	t.Helper()
	for _, host := range []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"} {
		if strings.Contains(code, host) {
			code = strings.ReplaceAll(code, host, testserver.Redis(t).Addr)
		}
	}
	return code
}

// pages returns the blocks of README.md and docs/, decisions left out.
func pages(t *testing.T) []block {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, name := range append([]string{"README.md"}, names...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := blocks(name, string(text))
		if err != nil {
			t.Error(err)
		}
		all = append(all, found...)
	}
	return all
}

func TestR85GoBlocksOfTheDocs(t *testing.T) {
	type job struct {
		block
		dir, how string
	}
	var jobs []job
	files := map[string]string{}
	for _, b := range pages(t) {
		if b.language != "go" {
			continue
		}
		if b.skip != "" {
			t.Logf("%v: skipped: %s", b, b.skip)
			continue
		}
		name, text, how, err := b.program()
		if err != nil {
			t.Errorf("%v: %v", b, err)
			continue
		}
		dir := fmt.Sprintf("%s_line%d", strings.NewReplacer("/", "_", ".md", "").Replace(b.file), b.line)
		files[dir+"/"+name] = withServers(t, text)
		jobs = append(jobs, job{b, dir, how})
	}
	if len(jobs) == 0 {
		t.Fatal("no Go block found")
	}
	module := consumer(t, "1.26.0", []string{".", "config", "mw/watermillmw", "stores/redisstore", "stores/pgstore", "stores/etcdstore", "stores/sqlitestore"}, files)
	runGo(t, module, "vet", "./...") // a failure names the page and the line by the folder
	for _, j := range jobs {
		if j.vetOnly != "" {
			t.Logf("%v: vetted and not run: %s", j, j.vetOnly)
			continue
		}
		t.Run(j.String(), func(t *testing.T) {
			out := runGo(t, filepath.Join(module, j.dir), j.how, ".")
			if want, promised := j.output(); promised && j.how == "run" && out != want {
				t.Errorf("it printed\n%s\nand the page promises\n%s", out, want)
			}
		})
	}
}

// output returns what the comment "// Output:" at the end of a block promises.
func (b block) output() (text string, promised bool) {
	_, comment, promised := strings.Cut(b.code, "// Output:\n")
	for line := range strings.Lines(comment) {
		text += strings.TrimPrefix(strings.TrimPrefix(line, "//"), " ")
	}
	return strings.TrimSpace(text), promised
}

// runGo runs the go command, bounded, and returns what it printed. Of a single
// block that fails it shows what the block was completed to.
func runGo(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		source, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		text, _ := os.ReadFile(append(source, "")[0])
		t.Errorf("go %s: %v\n%s\n%s", strings.Join(args, " "), err, out, text)
	}
	return strings.TrimSpace(string(out))
}

// The test of the test: what is wrong with a page is seen.
func TestR85BlocksAreExtracted(t *testing.T) {
	page := strings.Join([]string{
		"text", "<!-- doctest: hidden", "x := 1", "-->", "```go", "fmt.Println(x)", "```",
		"<!-- doctest: vet only: needs a moon -->", "```go", "func f() {}", "```", "```sh", "quorum demo", "```",
	}, "\n")
	got, err := blocks("page.md", page)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0].line != 5 || got[0].hidden[0] != "x := 1" || got[1].vetOnly != "needs a moon" || got[2].language != "sh" {
		t.Fatalf("extracted %+v", got)
	}
	_, text, how, err := got[0].program()
	if err != nil || how != "run" {
		t.Fatalf("%s, %v", how, err)
	}
	for _, want := range []string{`import fmt "fmt"`, "x := 1\n", "fmt.Println(x)\nreturn nil\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, wrong := range []string{"<!-- doctest: skip -->", "<!-- doctest: skp: because -->"} {
		if _, err := blocks("page.md", wrong+"\n```go\n```"); err == nil {
			t.Errorf("%s was taken", wrong)
		}
	}
	if _, _, _, err := (block{code: "x := ("}).program(); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a block that does not parse was completed: %v", err)
	}
}
