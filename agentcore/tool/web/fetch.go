package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// bodyLimit is bytes read of a page, after decompression.
const bodyLimit = 4 << 20

// document is a page that was fetched.
type document struct {
	url    *url.URL // after redirects
	status int
	title  string
	text   string
	cut    bool // there was more than bodyLimit
	// unreadable names the content type of what is no text.
	unreadable string
}

// heading is what the page says of itself; it belongs to the untrusted text.
func (d document) heading() string {
	head := "URL: " + d.url.String() + "\n"
	if d.title != "" {
		head += "Title: " + oneLine(d.title, 300) + "\n"
	}
	return head + "\n"
}

// get fetches and reads a page within the limit of time.
func (f *fetcher) get(ctx context.Context, u *url.URL) (document, error) {
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return document{}, err
	}
	req.Header.Set("User-Agent", "parley/1.0 (web_fetch)")
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, */*;q=0.5")
	resp, err := f.client.Do(req)
	if err != nil {
		return document{}, err
	}
	defer resp.Body.Close()
	d := document{url: resp.Request.URL, status: resp.StatusCode}
	d.url.Fragment = ""
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	if err != nil && len(body) == 0 {
		return document{}, err
	}
	d.cut = len(body) > bodyLimit || err != nil
	body = body[:min(len(body), bodyLimit)]
	return d, d.read(ctx, body, resp.Header.Get("Content-Type"))
}

// read turns the body into text.
func (d *document) read(ctx context.Context, body []byte, contentType string) error {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind == "application/octet-stream" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		text, err := decode(body, contentType)
		if err != nil {
			return err
		}
		return d.readHTML(ctx, text)
	case strings.HasPrefix(kind, "text/") || textual(kind):
		text, err := decode(body, contentType)
		d.text = text
		return err
	}
	d.unreadable = oneLine(fmt.Sprintf("%s, %d bytes", kind, len(body)), 100)
	return nil
}

// textual are the types that are text by another name.
func textual(kind string) bool {
	_, sub, _ := strings.Cut(kind, "/")
	for _, s := range []string{"json", "xml", "yaml", "x-yaml", "toml", "javascript", "ecmascript", "x-sh", "x-ndjson", "sql", "x-tex"} {
		if sub == s || strings.HasSuffix(sub, "+"+s) {
			return true
		}
	}
	return false
}

// decode makes UTF-8 of a body. A charset that is only guessed, by the beginning of
// the text, gives way to UTF-8 if the whole is that.
func decode(body []byte, contentType string) (string, error) {
	enc, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" || !certain && utf8.Valid(body) {
		return strings.ToValidUTF8(strings.TrimPrefix(string(body), "\uFEFF"), "\uFFFD"), nil
	}
	out, err := io.ReadAll(enc.NewDecoder().Reader(bytes.NewReader(body)))
	return strings.ToValidUTF8(strings.TrimPrefix(string(out), "\uFEFF"), "\uFFFD"), err
}
