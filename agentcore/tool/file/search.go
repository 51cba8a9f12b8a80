package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"parley/agentcore/tool"
)

const (
	matchLimit = 200
	// scanLimit is bytes looked at in one file, scanTotal in one call.
	scanLimit  = 16 << 20
	scanTotal  = 512 << 20
	searchDeep = 64
	// aroundMatch is bytes of a line that are shown.
	aroundMatch = 300
)

const searchDescription = `Search the conversation's folder: text in files by a regular expression, names by a glob, or both. Read-only, does not follow links, leaves out binary files and .git.`

type searchInput struct {
	Text       string `json:"text,omitempty" jsonschema:"regular expression (RE2) that a line must match; leave it out to search for names only"`
	Name       string `json:"name,omitempty" jsonschema:"glob for names, such as *.go; with a slash it is for the whole path, such as src/*.go"`
	Path       string `json:"path,omitempty" jsonschema:"the folder to search; the conversation's own folder if not given"`
	IgnoreCase bool   `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
}

func searchFiles(ctx context.Context, f folder, in searchInput) (tool.Result, error) {
	base, err := f.local(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	s := &search{folder: f, base: base, name: in.Name}
	if in.Text == "" && in.Name == "" {
		return tool.Failure("Give text, name, or both."), nil
	}
	if _, err := path.Match(in.Name, ""); err != nil {
		return tool.Failure("name is not a glob: %v. For example: *.go", err), nil
	}
	if in.Text != "" {
		expr := in.Text
		if in.IgnoreCase {
			expr = "(?i)" + expr
		}
		if s.text, err = regexp.Compile(expr); err != nil {
			return tool.Failure("text is not a regular expression: %v. Put a backslash before characters such as ( [ { . * + ? that are meant as they are.", err), nil
		}
	}
	s.fold = in.IgnoreCase
	w := walker{folder: f, depth: searchDeep, visit: func(e entry) error { return s.visit(ctx, e) }}
	if err := w.walk(ctx, base, 1); err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, cannot("searched", base, err)
	}
	return s.result(s.cut || w.cut), nil
}

// search is one call under way.
type search struct {
	folder  folder
	base    string
	name    string
	fold    bool
	text    *regexp.Regexp
	out     strings.Builder
	matches int
	files   int
	scanned int64
	cut     bool
}

func (s *search) visit(ctx context.Context, e entry) error {
	if e.mode.IsDir() && filepath.Base(e.name) == ".git" {
		return fs.SkipDir
	}
	if !s.named(e.name) {
		return nil
	}
	if s.text == nil {
		s.add(e.describe(s.folder, s.base))
	} else if e.mode.IsRegular() {
		if err := s.scan(ctx, e.name); err != nil {
			return err
		}
	}
	if s.matches >= matchLimit || s.out.Len() >= textLimit || s.scanned >= scanTotal {
		s.cut = true
		return errEnough
	}
	return nil
}

func (s *search) named(name string) bool {
	if s.name == "" {
		return true
	}
	rel, err := filepath.Rel(s.base, name)
	if err != nil {
		return false
	}
	rel, glob := filepath.ToSlash(rel), s.name
	if !strings.Contains(glob, "/") {
		rel = path.Base(rel)
	}
	if s.fold {
		rel, glob = strings.ToLower(rel), strings.ToLower(glob)
	}
	ok, _ := path.Match(glob, rel)
	return ok
}

func (s *search) add(line string) {
	s.matches++
	s.out.WriteString(line)
	s.out.WriteByte('\n')
}

// scan looks at one file. One that cannot be read, or is no text, has no match.
func (s *search) scan(ctx context.Context, name string) error {
	file, _, err := s.folder.openRegular(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	r := bufio.NewReaderSize(io.LimitReader(file, scanLimit), headLimit)
	head, _ := r.Peek(headLimit)
	k := kindOf(head)
	if k.binary != "" {
		return nil
	}
	s.files++
	_, _ = r.Discard(len(k.mark))
	// A line longer than the buffer is looked at in pieces.
	lines := bufio.NewReaderSize(k.reader(r), headLimit)
	for n := 1; ctx.Err() == nil; {
		chunk, err := lines.ReadSlice('\n')
		s.scanned += int64(len(chunk))
		if loc := s.text.FindIndex(trimLine(chunk)); loc != nil {
			s.add(fmt.Sprintf("%s:%d: %s", shown(name), n, around(string(trimLine(chunk)), loc[0])))
		}
		switch {
		case s.matches >= matchLimit || s.out.Len() >= textLimit:
			return nil
		case err == nil:
			n++
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil
		}
	}
	return ctx.Err()
}

func trimLine(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }

// around cuts a long line to what is near a match.
func around(line string, at int) string {
	if len(line) <= aroundMatch {
		return line
	}
	from := max(at-aroundMatch/3, 0)
	to := min(from+aroundMatch, len(line))
	out := strings.ToValidUTF8(line[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(line) {
		out += "…"
	}
	return out
}

func (s *search) result(cut bool) tool.Result {
	what := "names"
	if s.text != nil {
		what = "lines"
	}
	if s.matches == 0 {
		text := "No " + what + " match"
		if s.text != nil {
			text += fmt.Sprintf(" in %d files", s.files)
		}
		if cut {
			text += "; not everything was looked at: search a smaller folder"
		}
		return tool.Result{Text: text + "."}
	}
	text := fmt.Sprintf("%d %s match.", s.matches, what)
	if cut {
		text = fmt.Sprintf("The first %d %s that match; there may be more. Search a smaller folder, or for something rarer.", s.matches, what)
	}
	return tool.Result{Text: text, Untrusted: s.out.String()}
}
