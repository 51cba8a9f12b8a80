package terminal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// spoolFolder is where whole outputs are kept, in the working folder.
	spoolFolder = ".output"
	// spoolLimit is bytes of one output that are kept, spoolFiles how many outputs.
	spoolLimit = 64 << 20
	spoolFiles = 20
	// partPrefix begins the name of an output that is still coming. One to which nothing
	// was added for partAge was left by a process that died.
	partPrefix = "part-"
	partAge    = 24 * time.Hour
	// scratchFolder is where commands have their temporary files, in the working
	// folder; what has lain there unchanged for scratchAge is removed.
	scratchFolder = ".tmp"
	scratchAge    = 7 * 24 * time.Hour
)

// spool keeps a whole output in a file of the working folder. The folder is the
// model's: it is opened so that no link in it leads elsewhere.
type spool struct {
	root    *os.Root
	file    *os.File
	name    string
	sum     hash.Hash
	written int
	err     error
}

func newSpool(folder string) *spool {
	s := &spool{name: path.Join(spoolFolder, partPrefix+rand.Text()), sum: sha256.New()}
	if s.root, s.err = os.OpenRoot(folder); s.err != nil {
		return s
	}
	if s.err = s.root.MkdirAll(spoolFolder, 0o700); s.err != nil {
		return s
	}
	prune(s.root, ".txt")
	s.file, s.err = s.root.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return s
}

// sweep removes what nobody comes back for: the halves of outputs, and temporary files
// that are old. What cannot be removed stays; it is looked at again.
func sweep(folder string, now time.Time) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return
	}
	defer root.Close()
	for _, e := range entriesOf(root, spoolFolder) {
		if strings.HasPrefix(e.Name(), partPrefix) && older(e, now, partAge) {
			_ = root.Remove(path.Join(spoolFolder, e.Name()))
		}
	}
	for _, e := range entriesOf(root, scratchFolder) {
		if older(e, now, scratchAge) {
			_ = root.RemoveAll(path.Join(scratchFolder, e.Name()))
		}
	}
}

func older(e os.DirEntry, now time.Time, age time.Duration) bool {
	info, err := e.Info()
	return err == nil && now.Sub(info.ModTime()) > age
}

func entriesOf(root *os.Root, folder string) []os.DirEntry {
	dir, err := root.Open(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(-1) // what could be read
	return entries
}

// prune takes the oldest outputs of a kind away, before another comes.
func prune(root *os.Root, suffix string) {
	type old struct {
		name string
		at   int64
	}
	var all []old
	for _, e := range entriesOf(root, spoolFolder) {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), suffix) {
			all = append(all, old{e.Name(), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(all, func(a, b old) int { return int(min(max(b.at-a.at, -1), 1)) })
	for _, o := range all[min(len(all), spoolFiles-1):] {
		_ = root.Remove(path.Join(spoolFolder, o.name))
	}
}

func (s *spool) write(b []byte) {
	if s.err != nil {
		return
	}
	b = b[:min(len(b), spoolLimit-s.written)]
	_, s.err = s.file.Write(b)
	s.sum.Write(b)
	s.written += len(b)
}

// keep closes the file and names it by its content, so that the same output is the
// same file. It returns the path in the working folder, "" if nothing was kept.
func (s *spool) keep() string {
	defer s.close()
	if s.err != nil {
		if s.file != nil {
			_ = s.root.Remove(s.name) // half an output is none
		}
		return ""
	}
	name := path.Join(spoolFolder, hex.EncodeToString(s.sum.Sum(nil)[:6])+".txt")
	if err := s.root.Rename(s.name, name); err != nil {
		return ""
	}
	return name
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.root != nil {
		_ = s.root.Close()
	}
}
