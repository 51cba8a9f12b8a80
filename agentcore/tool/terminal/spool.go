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
)

const (
	// spoolFolder is where whole outputs are kept, in the working folder.
	spoolFolder = ".output"
	// spoolLimit is bytes of one output that are kept, spoolFiles how many outputs.
	spoolLimit = 64 << 20
	spoolFiles = 20
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
	s := &spool{name: path.Join(spoolFolder, "part-"+rand.Text()), sum: sha256.New()}
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

// prune takes the oldest outputs of a kind away, before another comes.
func prune(root *os.Root, suffix string) {
	dir, err := root.Open(spoolFolder)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return
	}
	type old struct {
		name string
		at   int64
	}
	var all []old
	for _, e := range entries {
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
