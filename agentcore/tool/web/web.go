// Package web is the tools web_fetch and web_search. It guarantees:
//
//   - web_fetch reaches public addresses only, and those that the owner has permitted.
//     What is checked is the address that is dialled, at each redirect anew, so neither
//     a name nor its second answer leads into a private network (TOL-001);
//   - a call ends within its time, and reads a bounded amount, whatever the server does;
//   - no proxy, cookie or credential of the environment is used;
//   - what a page, a title or a search result says reaches the model as untrusted data.
package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
)

const (
	// pageLimit is bytes of a page's text in one result.
	pageLimit = 20 << 10
	// extractLimit is bytes of a page's text that a question is asked about.
	extractLimit = 200 << 10
	fetchTime    = 30 * time.Second
	maxRedirects = 5
)

// Extractor answers a question about a text, on the account of the call. The text is
// somebody else's and may be meant to mislead.
type Extractor interface {
	Extract(ctx context.Context, c tool.Call, question, text string) (string, error)
}

// Deps are what the tools work with.
type Deps struct {
	// Extract answers questions about pages; nil: web_fetch takes none.
	Extract Extractor
}

const fetchDescription = `Fetch a web page (http or https) and return its readable text as Markdown. Long pages come in pieces: the result says at which offset to go on.`

const questionDescription = ` With a question, another model reads the whole page and returns only what answers it: use that for long pages.`

type fetchInput struct {
	URL    string `json:"url" jsonschema:"the address of the page"`
	Offset int    `json:"offset,omitempty" jsonschema:"where in the page's text to begin, as an earlier result said"`
}

type askInput struct {
	fetchInput
	Question string `json:"question,omitempty" jsonschema:"what to find out from the page"`
}

// fetcher is the tool web_fetch.
type fetcher struct {
	guard   *guard
	client  *http.Client
	extract Extractor
	limit   time.Duration // fetchTime
}

// NewFetch makes the tool web_fetch.
func NewFetch(cfg Config, deps Deps) (tool.Tool, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	g, err := newGuard(cfg)
	if err != nil {
		return nil, err
	}
	return newFetcher(g, deps.Extract).tool()
}

func newFetcher(g *guard, e Extractor) *fetcher {
	f := &fetcher{guard: g, extract: e, limit: fetchTime}
	f.client = &http.Client{
		// A transport of its own has no proxy, and keeps no connection, so each fetch
		// is resolved and checked.
		Transport: &http.Transport{
			DialContext: g.connect, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: 20 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refuse("it redirects more than %d times", maxRedirects)
			}
			return g.checkURL(r.URL)
		},
	}
	return f
}

func (f *fetcher) tool() (tool.Tool, error) {
	spec := tool.Spec{Needs: tool.Network, Parallel: true, ReadOnly: true}
	spec.ToolSpec = llm.ToolSpec{Name: "web_fetch", Description: fetchDescription}
	if f.extract == nil {
		return tool.New(spec, func(ctx context.Context, c tool.Call, in fetchInput) (tool.Result, error) {
			return f.run(ctx, c, askInput{fetchInput: in}), nil
		})
	}
	spec.Description += questionDescription
	return tool.New(spec, func(ctx context.Context, c tool.Call, in askInput) (tool.Result, error) {
		return f.run(ctx, c, in), nil
	})
}

func (f *fetcher) run(ctx context.Context, c tool.Call, in askInput) tool.Result {
	u, err := url.Parse(strings.TrimSpace(in.URL))
	if err != nil || u.Opaque != "" {
		return tool.Failure("That is no URL. Give one such as https://example.com/page")
	}
	if err := f.guard.checkURL(u); err != nil {
		return tool.Failure("Not fetched: %v.", err)
	}
	d, err := f.get(ctx, u)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return tool.Result{Text: "Stopped before it had finished.", Failed: true, Outcome: "interrupted"}
	default:
		return tool.Failure("%s could not be fetched: %s.", u.Host, reason(err, f.limit))
	}
	if d.status >= 400 {
		res := tool.Failure("%s answers with status %d (%s).", u.Host, d.status, http.StatusText(d.status))
		res.Untrusted = tool.Clip(d.text, 2000)
		return res
	}
	if d.unreadable != "" {
		return tool.Failure("%s answers with %s, which has no text to read here.", u.Host, d.unreadable)
	}
	if strings.TrimSpace(d.text) == "" {
		return tool.Failure("The page at %s has no readable text; it may be made by scripts, which do not run here.", u.Host)
	}
	if in.Question != "" {
		return f.answer(ctx, c, in.Question, d)
	}
	return piece(d, in.Offset)
}

// answer has another model read the page.
func (f *fetcher) answer(ctx context.Context, c tool.Call, question string, d document) tool.Result {
	text := tool.Clip(d.text, extractLimit)
	answer, err := f.extract.Extract(ctx, c, question, d.heading()+text)
	if ctx.Err() != nil {
		return tool.Result{Text: "Stopped before it had finished.", Failed: true, Outcome: "interrupted"}
	}
	if err != nil {
		res := piece(d, 0)
		res.Text = "The page could not be read for the question, so this is its text. " + res.Text
		return res
	}
	return tool.Result{Text: "What the page says to the question:", Untrusted: d.heading() + tool.Clip(answer, pageLimit)}
}

// piece is the page's text from an offset on, cut at a line if one is near.
func piece(d document, offset int) tool.Result {
	all := d.text
	from := min(max(offset, 0), len(all))
	for from > 0 && from < len(all) && !utf8.RuneStart(all[from]) {
		from--
	}
	if from == len(all) {
		return tool.Failure("The page's text has %d bytes; there is nothing at offset %d.", len(all), offset)
	}
	to := min(from+pageLimit, len(all))
	for to < len(all) && !utf8.RuneStart(all[to]) {
		to--
	}
	if i := strings.LastIndexByte(all[from:to], '\n'); to < len(all) && i > (to-from)*4/5 {
		to = from + i + 1
	}
	text := "The page's text:"
	switch {
	case to < len(all):
		text = fmt.Sprintf("The page's text from %d to %d of %d. Go on with offset %d.", from, to, len(all), to)
	case from > 0:
		text = fmt.Sprintf("The page's text from %d to its end at %d.", from, to)
	}
	if d.cut {
		text += " The page was longer than is read here."
	}
	return tool.Result{Text: text, Untrusted: d.heading() + all[from:to]}
}

// reason is an error without the URL, which may be long or carry a secret.
func reason(err error, limit time.Duration) string {
	var r refusal
	if errors.As(err, &r) {
		return r.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("it took more than %s", limit)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return oneLine(err.Error(), 200)
}

// oneLine makes a bounded line of a text.
func oneLine(s string, limit int) string {
	return tool.Clip(strings.Join(strings.Fields(s), " "), limit)
}
