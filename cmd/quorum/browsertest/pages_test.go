package browsertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// build builds the command and returns the path of it.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "quorum")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return binary
}

// browser starts a Chromium of the test's own.
func browser(t *testing.T) context.Context {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if testing.Short() && os.Getenv("CI") == "" {
			t.Skip("chromium is missing: make servers")
		}
		t.Fatal("chromium is missing; install it with: make servers")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.WindowSize(1500, 1000), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		bounded, stop := context.WithTimeout(ctx, 10*time.Second)
		defer stop()
		_ = chromedp.Cancel(bounded) // waits until the browser has gone
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// complaints collects what a page says on the console, throws, or asks of the
// network.
type complaints struct {
	mu  sync.Mutex
	all []string
}

func (c *complaints) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, text)
}

func (c *complaints) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		c.add("threw: " + e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		c.add("wrote to the console: " + string(e.Type))
	case *log.EventEntryAdded:
		c.add("logged: " + e.Entry.Text)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "file:") && !strings.HasPrefix(e.Request.URL, "data:") {
			c.add("asked the network for " + e.Request.URL)
		}
	}
}

func (c *complaints) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.all {
		t.Errorf("the page %s", text)
	}
}

func TestR84EveryPageOpens(t *testing.T) {
	quorum := build(t)
	root := browser(t)
	list, err := exec.Command(quorum, "sim", "explain").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < 11 {
		t.Fatalf("only %d failure modes", len(lines))
	}
	dir := t.TempDir()
	for _, line := range lines {
		name := strings.Fields(line)[0]
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".html")
			if out, err := exec.Command(quorum, "sim", "explain", name, "-o", file).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			open(t, root, file, strings.TrimSpace(strings.TrimPrefix(line, name)))
		})
	}
}

// open opens a page in a tab, looks at what is drawn, and steps through it.
func open(t *testing.T, root context.Context, file, title string) {
	ctx, cancel := chromedp.NewContext(root)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	page := &complaints{}
	if err := chromedp.Listen(ctx, page.listen); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	heading := read(t, ctx, "h1")
	drawn, err := chromedp.Run(ctx, chromedp.Evaluate[shown](inspect))
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, ctx, "#said")
	first := press(t, ctx, kb.ArrowRight)
	second := press(t, ctx, kb.ArrowRight)
	back := press(t, ctx, kb.ArrowLeft)
	last := press(t, ctx, kb.End)
	page.check(t)
	if heading != title {
		t.Errorf("the heading is %q, want %q", heading, title)
	}
	if drawn.Lanes < 6 || drawn.Bars < 2 || drawn.Arrows < 10 || drawn.Steps < 20 || drawn.Titles < drawn.Arrows {
		t.Errorf("there is little to see: %+v", drawn)
	}
	if drawn.Outside > 0 {
		t.Errorf("%d things are drawn outside of the picture", drawn.Outside)
	}
	if first == before || second == first || back != first || last == first || !strings.Contains(first, " s: ") {
		t.Errorf("the keys step through %q, %q, back to %q, to the end %q", first, second, back, last)
	}
}

// read returns the text of an element.
func read(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// press presses a key and returns what the page then says.
func press(t *testing.T, ctx context.Context, key string) string {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.KeyEvent(key)); err != nil {
		t.Fatal(err)
	}
	return read(t, ctx, "#said")
}

// shown is how much of what a page shows.
type shown struct {
	Lanes   int `json:"lanes"`
	Bars    int `json:"bars"`
	Arrows  int `json:"arrows"`
	Steps   int `json:"steps"`
	Titles  int `json:"titles"`
	Outside int `json:"outside"` // of the picture
}

// inspect counts what a page shows.
const inspect = `(() => {
  const svg = document.querySelector("svg[role=img]"), count = s => svg.querySelectorAll(s).length;
  const frame = svg.getBoundingClientRect();
  const out = [...svg.querySelectorAll("text, rect, circle")].filter(e => {
    const r = e.getBoundingClientRect();
    return r.width > 0 && (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1);
  });
  return {
    lanes: document.querySelectorAll(".names div").length, bars: count(".belief, .vote"), arrows: count(".msg"),
    steps: document.querySelectorAll("#steps li").length, titles: count("title"), outside: out.length,
  };
})()`
