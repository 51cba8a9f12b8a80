package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// policy lets the page load its own files and nothing else; markup reaches the
// document through the one policy named here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

// page is the embedded files with what never changes about them.
type page struct {
	build string // names this version of the files: an older open page reloads
	files map[string]file
}

type file struct {
	content []byte
	kind    string
	etag    string
}

func newPage() (*page, error) {
	p := &page{files: map[string]file{}}
	all := sha256.New()
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		all.Write(sum[:])
		p.files[path.Base(name)] = file{b, mime.TypeByExtension(path.Ext(name)), `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	p.build = hex.EncodeToString(all.Sum(nil)[:8])
	return p, err
}

// asset serves one embedded file; there is nothing secret in them.
func (p *page) asset(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[r.PathValue("file")]
	if !ok || f.kind == "text/html; charset=utf-8" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.etag)
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	_, _ = w.Write(f.content)
}

// document serves one of the HTML files with words in the place of others.
func (p *page) document(w http.ResponseWriter, name string, status int, oldNew ...string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = strings.NewReplacer(oldNew...).WriteString(w, string(p.files[name].content))
}
