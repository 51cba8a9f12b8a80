package terminal

import (
	"crypto/rand"
	"os"
	"path"
	"sync"
)

// processLog is the output of a process: a file in the working folder, of which
// pieces are read. It is safe for concurrent use.
type processLog struct {
	mu      sync.Mutex
	root    *os.Root
	file    *os.File
	name    string
	size    int64
	read    int64
	changed chan struct{}
}

func newProcessLog(folder string) (*processLog, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	l := &processLog{root: root, name: path.Join(spoolFolder, "process-"+rand.Text()[:10]+".log"), changed: make(chan struct{})}
	if err = root.MkdirAll(spoolFolder, 0o700); err == nil {
		prune(root, ".log")
		l.file, err = root.OpenFile(l.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return l, nil
}

// Write implements io.Writer; what is more than spoolLimit is dropped.
func (l *processLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, _ := l.file.WriteAt(b[:min(int64(len(b)), spoolLimit-l.size)], l.size)
	l.size += int64(n)
	close(l.changed)
	l.changed = make(chan struct{})
	return len(b), nil
}

// next returns the output since the last time, the newest readLimit bytes at most
// cut at a character, and how many bytes are still to read.
func (l *processLog) next() (text string, left int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := make([]byte, min(l.size-l.read, readLimit))
	file := l.file
	if file == nil { // the process has ended
		f, err := os.OpenInRoot(l.root.Name(), l.name)
		if err != nil {
			return "", 0
		}
		defer f.Close()
		file = f
	}
	n, _ := file.ReadAt(b, l.read)
	whole := trimPartial(string(b[:n]))
	if whole == "" && n > 0 {
		whole = string(b[:n])
	}
	l.read += int64(len(whole))
	return clean(whole), l.size - l.read
}

// news is closed when there is output that was not read.
func (l *processLog) news() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read < l.size {
		ready := make(chan struct{})
		close(ready)
		return ready
	}
	return l.changed
}

func (l *processLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
	_ = l.root.Close()
}
