package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"parley/agentcore/tool"
)

const writeDescription = `Write a text file of the conversation's folder: a new one, with the folders that lead to it, or a whole new content for one that is there. To change a part of a file, use edit_file.
A file that is there keeps its mode, its encoding and its kind of line ends.`

type writeInput struct {
	Path    string `json:"path" jsonschema:"the file, relative to the folder"`
	Content string `json:"content" jsonschema:"all that the file is to say"`
}

func writeFile(_ context.Context, f folder, in writeInput) (tool.Result, error) {
	name, err := f.local(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if len(in.Content) > sizeLimit {
		return tool.Failure("The content has %s; a file may have %s.", sized(int64(len(in.Content))), sized(sizeLimit)), nil
	}
	real, err := f.target(name)
	if err != nil {
		return tool.Result{}, err
	}
	old, err := f.load(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.create(name, real, in.Content)
	case errors.Is(err, errTooLarge) || err == nil && old.kind.binary != "":
		old = loaded{info: old.info} // replaced by text, as it comes
	case err != nil:
		return tool.Result{}, cannot("written", name, err)
	}
	text, note := in.Content, ""
	if end := lineEnd(old.text); end == "\r\n" && old.text != "" {
		text, note = withLineEnd(text, end), ", with its CRLF line ends"
	}
	b, err := old.kind.encode(text)
	if err != nil {
		return tool.Result{}, err
	}
	if err := f.replace(real, b, old.info); err != nil {
		return tool.Result{}, cannot("written", name, err)
	}
	return tool.Result{Text: fmt.Sprintf("Wrote %s over %s%s.", sized(int64(len(b))), shown(name), note)}, nil
}

func (f folder) create(name, real, content string) (tool.Result, error) {
	if strings.IndexFunc(real, unicode.IsControl) >= 0 {
		return tool.Failure("The name %s has control characters in it; choose another.", shown(name)), nil
	}
	if dir := filepath.Dir(real); dir != "." {
		if err := f.MkdirAll(dir, 0o755); err != nil {
			return tool.Result{}, cannot("written", name, err)
		}
	}
	if err := f.replace(real, []byte(content), nil); err != nil {
		return tool.Result{}, cannot("written", name, err)
	}
	return tool.Result{Text: fmt.Sprintf("Wrote %s to the new file %s.", sized(int64(len(content))), shown(name))}, nil
}

// errTooLarge is load's word for a file that is not held in memory.
var errTooLarge = errors.New("the file is too large")

// loaded is a file that is to be changed.
type loaded struct {
	info fs.FileInfo
	kind kind
	text string
}

// load reads a whole file. With errTooLarge, info is there.
func (f folder) load(name string) (loaded, error) {
	file, info, err := f.openRegular(name)
	if err != nil {
		return loaded{}, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, sizeLimit+1))
	if err != nil {
		return loaded{}, err
	}
	l := loaded{info: info}
	if len(b) > sizeLimit {
		return l, errTooLarge
	}
	l.kind = kindOf(b[:min(len(b), headLimit)])
	if l.kind.binary != "" {
		return l, nil
	}
	var ok bool
	if l.text, ok = l.kind.decode(b); !ok {
		l.kind = kind{binary: "damaged " + l.kind.name}
	}
	return l, nil
}

// maxLinks is how many links may lead to a file, one after the other.
const maxLinks = 8

// target is the name that a write replaces: that of the file, not of a link to it.
func (f folder) target(name string) (string, error) {
	real := name
	for range maxLinks {
		to, err := f.Readlink(real)
		if err != nil {
			return real, nil // no link, or nothing there
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(real), to)
		}
		if !filepath.IsLocal(to) {
			return "", problemf("%s is a link that leads out of the folder.", shown(name))
		}
		real = to
	}
	return "", problemf("%s: too many links in a row.", shown(name))
}

// replace puts a new file in the place of name in one step. old is what is there, nil
// for nothing; if it has changed since, nothing is done. The new file is one of its
// own: other names of the old one keep the old content.
func (f folder) replace(name string, b []byte, old fs.FileInfo) (err error) {
	mode := fs.FileMode(0o644)
	if old != nil {
		mode = old.Mode().Perm()
	}
	temp := filepath.Join(filepath.Dir(name), ".parley-"+rand.Text())
	file, err := f.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Remove(temp)
		}
	}()
	_, err = file.Write(b)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := f.unchanged(name, old); err != nil {
		return err
	}
	return f.Rename(temp, name)
}

// unchanged says whether name is still what was read.
func (f folder) unchanged(name string, old fs.FileInfo) error {
	now, err := f.Lstat(name)
	switch {
	case old == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case old == nil || !os.SameFile(now, old) || !now.ModTime().Equal(old.ModTime()) || now.Size() != old.Size():
		return problem("It was changed by something else meanwhile; nothing was written. Read it again.")
	}
	return nil
}
