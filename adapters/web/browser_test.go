package web_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browserNames are the programs that can drive the page, in order of preference.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// startBrowser runs one headless browser for all tabs of a test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range browserNames {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("no browser for the page's tests; install one: apt-get install -y chromium")
	}
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()),
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	t.Cleanup(cancel)
	ctx, cancelBrowser := chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancelBrowser() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is one page of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // exceptions and refused content
}

func openTab(t *testing.T, browser context.Context, s *site) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancelTime)
	b := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, (&chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}).Error())
		case *log.EventEntryAdded:
			if ev.Entry.Source == log.EntrySourceSecurity || strings.Contains(ev.Entry.Text, "Content Security Policy") {
				b.problems = append(b.problems, ev.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	b.run(chromedp.EmulateViewport(1180, 780), chromedp.Navigate(s.url+"/"+s.adapter.StartPath()))
	b.wait(`document.querySelector('#link')?.dataset.state === 'online'`)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Errorf("the page complained: %s", p)
		}
	})
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// wait lets the page itself wait for a condition; the tab's deadline ends it.
func (b *tab) wait(condition string) {
	b.t.Helper()
	js := `(async () => { while (!(` + condition + `)) await new Promise((r) => setTimeout(r, 15)); return true })()`
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](js, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatalf("waiting for %s: %v", condition, err)
	}
}

// is checks a condition now.
func (b *tab) is(condition string) {
	b.t.Helper()
	if !eval[bool](b, `Boolean(`+condition+`)`) {
		b.t.Errorf("not so: %s", condition)
	}
}

func eval[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// do runs a script for its effect.
func (b *tab) do(js string) { b.t.Helper(); b.run(chromedp.Evaluate[chromedp.Void](js)) }

func (b *tab) click(selector string) { b.t.Helper(); b.run(chromedp.Click(chromedp.CSS(selector))) }

func call[P, R any](b *tab, cmd cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, cmd, params); err != nil {
		b.t.Fatal(err)
	}
}

// write puts text into the focused element as a paste would.
func (b *tab) write(text string) {
	b.t.Helper()
	call(b, input.InsertText, input.InsertTextParams{Text: text})
}

// key presses a key as a keyboard does: its character is part of the key's going
// down, so that a page which handles the key gets no character.
func (b *tab) key(key string, modifiers chromedp.Modifier) {
	b.t.Helper()
	events := kb.Encode([]rune(key)[0])
	down, up := events[0], events[len(events)-1]
	if len(events) == 3 {
		down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
	}
	for _, ev := range []*input.DispatchKeyEventParams{down, up} {
		ev.Modifiers |= int64(modifiers)
		call(b, input.DispatchKeyEvent, *ev)
	}
}

func (b *tab) dark() {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
}

// phone makes the tab as narrow as the narrowest phones.
func (b *tab) phone() {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(360, 700, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

// picture keeps a screenshot in the folder PARLEY_SCREENSHOTS, for people's eyes.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("PARLEY_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// quote makes a JavaScript string.
func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
