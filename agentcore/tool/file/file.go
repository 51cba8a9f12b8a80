// Package file is the tools that read and change the files of a conversation's
// folder. It guarantees:
//
//   - nothing outside the folder is read or written: not by `..`, by an absolute
//     path, by a link, nor by one that is swapped in while a call runs;
//   - a call does not hang: only regular files are opened, and those without waiting,
//     so a pipe or a device is a failed result;
//   - memory is bounded, whatever the size of a file or the number of files (TOL-003);
//   - a write is seen whole or not at all, keeps the file's mode, encoding and line
//     ends, and never goes through a hard link to another name;
//   - what a file says, and what it is called, reaches the model as untrusted data.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
)

const (
	// textLimit is bytes of text in one result.
	textLimit = 24 << 10
	// sizeLimit is bytes of a file that is changed, since it is held in memory.
	sizeLimit = 8 << 20
	// headLimit is bytes by which encoding and kind of a file are told.
	headLimit = 64 << 10
)

// Deps are what the tools work with.
type Deps struct {
	// Workspace holds the folders.
	Workspace tool.Workspace
}

// New makes the tools read_file, write_file, edit_file, list_files and search_files.
func New(deps Deps) ([]tool.Tool, error) {
	w := deps.Workspace
	read := tool.Spec{Parallel: true, ReadOnly: true}
	write := tool.Spec{Needs: tool.Write}
	makers := []func() (tool.Tool, error){
		func() (tool.Tool, error) { return bind(w, spec(read, "read_file", readDescription), readFile) },
		func() (tool.Tool, error) { return bind(w, spec(write, "write_file", writeDescription), writeFile) },
		func() (tool.Tool, error) { return bind(w, spec(write, "edit_file", editDescription), editFile) },
		func() (tool.Tool, error) { return bind(w, spec(read, "list_files", listDescription), listFiles) },
		func() (tool.Tool, error) { return bind(w, spec(read, "search_files", searchDescription), searchFiles) },
	}
	tools := make([]tool.Tool, 0, len(makers))
	for _, make := range makers {
		t, err := make()
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func spec(s tool.Spec, name, description string) tool.Spec {
	s.ToolSpec = llm.ToolSpec{Name: name, Description: description}
	return s
}

// folder is a conversation's folder while a call runs.
type folder struct {
	*os.Root
	path string
}

// bind makes a tool that runs in the conversation's folder. An error of run is a
// failed result.
func bind[In any](w tool.Workspace, s tool.Spec, run func(context.Context, folder, In) (tool.Result, error)) (tool.Tool, error) {
	return tool.New(s, func(ctx context.Context, c tool.Call, in In) (tool.Result, error) {
		root, dir, err := w.Open(c.Conversation)
		if err != nil {
			return tool.Failure("The folder cannot be used: %v", bare(err)), nil
		}
		defer root.Close()
		res, err := run(ctx, folder{root, dir}, in)
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return tool.Result{Text: "Stopped before it had finished.", Failed: true, Outcome: "interrupted"}, nil
		}
		return tool.Failure("%v", err), nil
	})
}

// problem is an error in words for the model.
type problem string

func (p problem) Error() string { return string(p) }

func problemf(format string, args ...any) error { return problem(fmt.Sprintf(format, args...)) }

// local turns what the model wrote into a name inside the folder. The folder's own
// absolute path and `~`, which commands see as the same place, are understood.
func (f folder) local(name string) (string, error) {
	given := name
	if strings.ContainsRune(name, 0) {
		return "", problemf("The path %s has a NUL byte in it.", shown(name))
	}
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = "." + name[1:]
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(f.path, name)
		if err != nil || !filepath.IsLocal(rel) {
			return "", problemf("%s is outside of the folder. Paths are relative to the conversation's folder; use terminal for other places.", shown(given))
		}
		name = rel
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) {
		return "", problemf("%s leads out of the folder. Paths are relative to the conversation's folder.", shown(given))
	}
	return name, nil
}

// errKind is what openRegular says of anything but a file.
type errKind struct{ mode fs.FileMode }

func (e errKind) Error() string {
	switch {
	case e.mode.IsDir():
		return "it is a folder; list_files shows what is in it"
	case e.mode&fs.ModeNamedPipe != 0:
		return "it is a pipe, not a file"
	case e.mode&fs.ModeSocket != 0:
		return "it is a socket, not a file"
	case e.mode&fs.ModeDevice != 0:
		return "it is a device, not a file"
	}
	return "it is not a regular file"
}

// openRegular opens a file to read and never waits: what is no file is not opened,
// and if it becomes one in between, opening does not block and is looked at again.
func (f folder) openRegular(name string) (*os.File, fs.FileInfo, error) {
	info, err := f.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errKind{info.Mode()}
	}
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errKind{info.Mode()}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// cannot puts an error of the file system into words.
func cannot(verb, name string, err error) error {
	var told problem
	switch {
	case errors.As(err, &told), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(path.Clean(filepath.ToSlash(name)), "files/"):
		return problemf("There is no %s: of what people have sent only the newest files are kept. list_files shows them; what is needed has to be sent again.", shown(name))
	case errors.Is(err, fs.ErrNotExist):
		return problemf("There is no %s. list_files and search_files show what there is.", shown(name))
	}
	return problemf("%s cannot be %s: %v.", shown(name), verb, bare(err))
}

// bare is an error without the operation and the absolute path of the machine.
func bare(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// shown is a name on one line: quoted where it has anything in it that does not
// print, so that a name cannot pass for something else.
func shown(name string) string {
	name = path.Clean(filepath.ToSlash(name))
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// sized is a number of bytes for a reader.
func sized(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
