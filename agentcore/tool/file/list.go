package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/agentcore/tool"
)

const (
	listLimit = 500
	maxDepth  = 6
	// folderLimit is how many entries of one folder are looked at, and walkLimit how
	// many a call looks at in all.
	folderLimit = 10_000
	walkLimit   = 50_000
)

const listDescription = `List a folder of the conversation: names, folders with a slash, sizes, where links lead. Read-only.`

type listInput struct {
	Path  string `json:"path,omitempty" jsonschema:"the folder to list; the conversation's own folder if not given"`
	Depth int    `json:"depth,omitempty" jsonschema:"how many levels; 1 if not given, at most 6"`
}

func listFiles(ctx context.Context, f folder, in listInput) (tool.Result, error) {
	name, err := f.local(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	depth := 1
	if in.Depth > 0 {
		depth = min(in.Depth, maxDepth)
	}
	var out strings.Builder
	count, cut := 0, false
	w := walker{folder: f, depth: depth, visit: func(e entry) error {
		if count == listLimit || out.Len() > textLimit {
			cut = true
			return errEnough
		}
		count++
		fmt.Fprintln(&out, e.describe(f, name))
		return nil
	}}
	if err := w.walk(ctx, name, 1); err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, cannot("listed", name, err)
	}
	switch {
	case count == 0:
		return tool.Result{Text: shown(name) + " is an empty folder."}, nil
	case cut || w.cut:
		return tool.Result{Text: fmt.Sprintf("The first %d entries of %s; there are more. List a folder in it, or use search_files.", count, shown(name)), Untrusted: out.String()}, nil
	}
	return tool.Result{Text: fmt.Sprintf("%d entries in %s.", count, shown(name)), Untrusted: out.String()}, nil
}

// entry is one name that a walk has found.
type entry struct {
	name string // from the conversation's folder
	mode fs.FileMode
}

// describe is a line of a listing.
func (e entry) describe(f folder, base string) string {
	rel, err := filepath.Rel(base, e.name)
	if err != nil {
		rel = e.name
	}
	switch {
	case e.mode.IsDir():
		return shown(rel) + "/"
	case e.mode&fs.ModeSymlink != 0:
		to, err := f.Readlink(e.name)
		if err != nil {
			to = "?"
		}
		return shown(rel) + " → " + shown(to)
	case !e.mode.IsRegular():
		return shown(rel) + "  (" + errKind{e.mode}.Error() + ")"
	}
	info, err := f.Lstat(e.name)
	if err != nil {
		return shown(rel)
	}
	return shown(rel) + "  " + sized(info.Size())
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// walker goes through a folder in the order of names. It follows no link, and looks
// at a bounded number of entries.
type walker struct {
	folder folder
	depth  int
	visit  func(entry) error // errEnough ends the walk, fs.SkipDir leaves a folder out
	seen   int
	cut    bool // not everything was looked at
}

func (w *walker) walk(ctx context.Context, name string, level int) error {
	entries, err := w.read(name)
	if err != nil {
		if level == 1 {
			return err
		}
		return nil // gone meanwhile, or not readable
	}
	for _, d := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.seen++; w.seen > walkLimit {
			w.cut = true
			return errEnough
		}
		e := entry{name: filepath.Join(name, d.Name()), mode: d.Type()}
		err := w.visit(e)
		switch {
		case errors.Is(err, fs.SkipDir):
			continue
		case err != nil:
			return err
		}
		if !d.IsDir() || level == w.depth {
			continue
		}
		if err := w.walk(ctx, e.name, level+1); err != nil {
			return err
		}
	}
	return nil
}

// read lists one folder. O_DIRECTORY keeps it from waiting for a pipe's other end.
func (w *walker) read(name string) ([]fs.DirEntry, error) {
	dir, err := w.folder.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(folderLimit)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	w.cut = w.cut || len(entries) == folderLimit
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}
