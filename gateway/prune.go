package gateway

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// copiesMost and copiesBytes bound what is kept, for each conversation, of what
	// people have sent; the oldest copies go first.
	copiesMost  = 200
	copiesBytes = 1 << 30
	// spooledFor is how long a file waits in the outbox at most. What is older was left
	// by a process that died, or is shown by a chat that only names it.
	spooledFor = 7 * 24 * time.Hour
	// partPrefix begins the name of a copy that is not complete yet.
	partPrefix = ".part-"
)

// copied are the names that fetchOne gives. Whatever else lies in the folder was put
// there by tools and is theirs.
var copied = regexp.MustCompile(`^[0-9a-f]{8}-`)

// prune takes the oldest copies of the conversation's folder away, but never one of a
// message that is still in the inbox. It is called where no turn runs and nothing is
// being fetched, so nothing is in use, and what is incomplete was left by a crash.
func (c *conversation) prune() {
	if c.g.deps.Workspace == nil || c.fetching != nil {
		return
	}
	folder, err := c.g.deps.Workspace.Folder(c.fence.Conversation)
	if err == nil {
		err = pruneCopies(folder, func(name string) bool {
			return slices.ContainsFunc(c.inbox, func(it record.InboxItem) bool { return names(it, name) })
		})
	}
	if err != nil {
		c.log.Warn("old files were not cleared away", zap.Error(err))
	}
}

// attached says that something came with a message.
func attached(it record.InboxItem) bool {
	ev, err := it.Event()
	m, ok := ev.(chat.MessageReceived)
	return err == nil && ok && len(m.Files) > 0
}

// names says that a message has a file of that path.
func names(it record.InboxItem, file string) bool {
	ev, err := it.Event()
	m, ok := ev.(chat.MessageReceived)
	return err == nil && ok && slices.ContainsFunc(m.Files, func(f chat.File) bool { return f.Path == file })
}

// pruneCopies keeps the newest copies, and those that are needed, within the bounds.
func pruneCopies(folder string, needed func(string) bool) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	all, err := fs.ReadDir(root.FS(), fileFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var copies []fs.FileInfo
	for _, e := range all {
		info, ierr := e.Info()
		switch {
		case ierr != nil || !info.Mode().IsRegular():
		case strings.HasPrefix(e.Name(), partPrefix):
			err = errors.Join(err, root.Remove(path.Join(fileFolder, e.Name())))
		case copied.MatchString(e.Name()):
			copies = append(copies, info)
		}
	}
	slices.SortFunc(copies, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var bytes int64
	for i, info := range copies {
		bytes += info.Size()
		if name := path.Join(fileFolder, info.Name()); (i >= copiesMost || bytes > copiesBytes) && !needed(name) {
			err = errors.Join(err, root.Remove(name))
		}
	}
	return err
}

// clearOutbox removes what has waited there for too long.
func (g *Gateway) clearOutbox() {
	if g.deps.Outbox == "" {
		return
	}
	all, err := os.ReadDir(g.deps.Outbox)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.log.Warn("the outbox was not cleared", zap.Error(err))
	}
	for _, e := range all {
		if info, err := e.Info(); err == nil && g.now().Sub(info.ModTime()) > spooledFor {
			if err := os.RemoveAll(filepath.Join(g.deps.Outbox, e.Name())); err != nil {
				g.log.Warn("the outbox was not cleared", zap.Error(err))
			}
		}
	}
}
