package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
)

const (
	searchTime     = 20 * time.Second
	defaultResults = 5
	maxResults     = 10
	answerLimit    = 2 << 20
)

const searchDescription = `Search the web. Returns titles, addresses and short excerpts; read a page with web_fetch.`

type searchInput struct {
	Query string `json:"query" jsonschema:"what to search for"`
	Count int    `json:"count,omitempty" jsonschema:"how many results; 5 if not given, at most 10"`
}

// hit is one result of a search.
type hit struct{ title, url, text string }

// engine is one search API.
type engine struct {
	name     string
	base     string // the address of its API, empty if each has a server of its own
	needsKey bool
	request  func(base, key, query string, count int) (*http.Request, error)
	decode   func([]byte) ([]hit, error)
}

// engines are the APIs there are.
var engines = []engine{
	{
		// https://api-dashboard.search.brave.com/app/documentation/web-search
		name: "brave", base: "https://api.search.brave.com", needsKey: true,
		request: func(base, key, query string, count int) (*http.Request, error) {
			q := url.Values{"q": {query}, "count": {fmt.Sprint(count)}}
			req, err := http.NewRequest(http.MethodGet, base+"/res/v1/web/search?"+q.Encode(), nil)
			if err == nil {
				req.Header.Set("X-Subscription-Token", key)
			}
			return req, err
		},
		decode: func(b []byte) ([]hit, error) {
			var r struct {
				Web struct {
					Results []struct{ Title, URL, Description string }
				}
			}
			err := json.Unmarshal(b, &r)
			hits := make([]hit, len(r.Web.Results))
			for i, h := range r.Web.Results {
				hits[i] = hit{h.Title, h.URL, h.Description}
			}
			return hits, err
		},
	},
	{
		// https://docs.tavily.com/documentation/api-reference/endpoint/search
		name: "tavily", base: "https://api.tavily.com", needsKey: true,
		request: func(base, key, query string, count int) (*http.Request, error) {
			b, err := json.Marshal(struct {
				Query      string `json:"query"`
				MaxResults int    `json:"max_results"`
			}{query, count})
			if err != nil {
				return nil, err
			}
			req, err := http.NewRequest(http.MethodPost, base+"/search", bytes.NewReader(b))
			if err == nil {
				req.Header.Set("Authorization", "Bearer "+key)
				req.Header.Set("Content-Type", "application/json")
			}
			return req, err
		},
		decode: decodeResults,
	},
	{
		// https://docs.searxng.org/dev/search_api.html
		name: "searxng",
		request: func(base, key, query string, _ int) (*http.Request, error) {
			q := url.Values{"q": {query}, "format": {"json"}}
			req, err := http.NewRequest(http.MethodGet, base+"/search?"+q.Encode(), nil)
			if err == nil && key != "" {
				req.Header.Set("Authorization", "Bearer "+key)
			}
			return req, err
		},
		decode: decodeResults,
	},
}

// decodeResults is the shape that tavily and searxng share.
func decodeResults(b []byte) ([]hit, error) {
	var r struct {
		Results []struct{ Title, URL, Content string }
	}
	err := json.Unmarshal(b, &r)
	hits := make([]hit, len(r.Results))
	for i, h := range r.Results {
		hits[i] = hit{h.Title, h.URL, h.Content}
	}
	return hits, err
}

// Search is the configured search API.
type Search struct {
	engine engine
	base   string
	key    string
	client *http.Client
}

// NewSearch makes the search; it fails if cfg is off.
func NewSearch(cfg SearchConfig) (*Search, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	if off := cfg.Off(); off != "" {
		return nil, errors.New("tools.web_search: " + off)
	}
	e := engines[slices.IndexFunc(engines, func(e engine) bool { return e.name == cfg.Provider })]
	return &Search{
		engine: e, base: strings.TrimSuffix(cmp.Or(cfg.BaseURL, e.base), "/"), key: cfg.APIKey.Reveal(),
		client: &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second},
			// A redirect would take the key elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Tool is web_search.
func (s *Search) Tool() (tool.Tool, error) {
	spec := tool.Spec{Needs: tool.Network, Parallel: true, ReadOnly: true}
	spec.ToolSpec = llm.ToolSpec{Name: "web_search", Description: searchDescription}
	return tool.New(spec, s.run)
}

// Probe searches once, for doctor. The error says what to do.
func (s *Search) Probe(ctx context.Context) error {
	_, err := s.find(ctx, "parley", 1)
	return err
}

func (s *Search) run(ctx context.Context, _ tool.Call, in searchInput) (tool.Result, error) {
	query := strings.Join(strings.Fields(in.Query), " ")
	if query == "" {
		return tool.Failure("The query is empty."), nil
	}
	count := defaultResults
	if in.Count > 0 {
		count = min(in.Count, maxResults)
	}
	hits, err := s.find(ctx, query, count)
	switch {
	case ctx.Err() != nil:
		return tool.Result{Text: "Stopped before it had finished.", Failed: true, Outcome: "interrupted"}, nil
	case err != nil:
		return tool.Failure("The search failed: %v.", err), nil
	case len(hits) == 0:
		return tool.Result{Text: "Nothing was found. Try other words."}, nil
	}
	var b strings.Builder
	for i, h := range hits[:min(len(hits), count)] {
		fmt.Fprintf(&b, "%d. %s\n   %s\n   %s\n", i+1, bareText(h.title, 200), oneLine(h.url, 500), bareText(h.text, 600))
	}
	return tool.Result{Text: "What the search has found:", Untrusted: b.String()}, nil
}

// find asks the API. Its error never has the key or the URL in it.
func (s *Search) find(ctx context.Context, query string, count int) ([]hit, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	req, err := s.engine.request(s.base, s.key, query, count)
	if err != nil {
		return nil, errors.New("the address of the search API is wrong")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "parley/1.0 (web_search)")
	resp, err := s.client.Do(req.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %s", s.engine.name, reason(err, searchTime))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %s", s.engine.name, reason(err, searchTime))
	}
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return nil, fmt.Errorf("%s refuses the key (status %d); the owner has to check tools.web_search", s.engine.name, code)
	case code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("%s has had too many searches; try later", s.engine.name)
	case code != http.StatusOK:
		return nil, fmt.Errorf("%s answers with status %d", s.engine.name, code)
	}
	hits, err := s.engine.decode(body)
	if err != nil {
		return nil, fmt.Errorf("%s answers with something that is no search result", s.engine.name)
	}
	return hits, nil
}

var tags = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// bareText is a line without the tags by which an API marks what was found.
func bareText(s string, limit int) string {
	return oneLine(html.UnescapeString(tags.ReplaceAllString(s, "")), limit)
}
