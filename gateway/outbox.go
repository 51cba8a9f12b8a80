package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/store/record"
)

// sentWithin is how long a turn waits for the platform to take a file. One that takes
// longer is posted all the same.
const sentWithin = 2 * time.Minute

// outbox implements agentcore.Outbox for one turn. What is to be sent is copied out of
// the conversation's folder first, where commands could put something else in its
// place, and stays there until it is sent.
type outbox struct {
	c     *conversation
	fence record.Fence
	turn  record.Turn
}

var _ agentcore.Outbox = outbox{}

func refused(format string, a ...any) error {
	return &agentcore.FileError{Said: fmt.Sprintf(format, a...)}
}

// SendFile writes the delivery and waits for what comes of it.
func (o outbox) SendFile(ctx context.Context, call, name string) error {
	d := record.Delivery{
		ID: record.DeliveryID(record.NewID()), Conversation: o.fence.Conversation, Turn: o.turn.ID, Kind: record.DeliverFile,
		Key: fmt.Sprintf("file/%s/%s", o.turn.ID, call), Address: o.turn.Address, State: record.DeliveryPending,
	}
	file, err := o.copyOut(d.ID, name)
	if err != nil {
		return err
	}
	d.Out = chat.Outgoing{Key: d.Key, Files: []chat.OutgoingFile{file}}
	if err := o.c.g.store.SaveDelivery(ctx, o.fence, d); err != nil {
		discard(file)
		if errors.Is(err, record.ErrConflict) {
			return nil // the call was made before; its file is on its way
		}
		return err
	}
	d, settled := o.c.post.deliver(ctx, d)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case settled && d.State != record.DeliverySent:
		return refused("The platform did not take the file: %s", cmp.Or(d.Error, string(d.State)))
	}
	return nil
}

// copyOut copies a regular file of the conversation's folder to where no tool reaches.
func (o outbox) copyOut(id record.DeliveryID, name string) (chat.OutgoingFile, error) {
	var none chat.OutgoingFile
	deps := o.c.g.deps
	if deps.Workspace == nil || deps.Outbox == "" {
		return none, refused("Files cannot be sent here.")
	}
	folder, err := deps.Workspace.Folder(o.fence.Conversation)
	if err != nil {
		return none, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return none, err
	}
	defer root.Close()
	if rel, err := filepath.Rel(folder, name); filepath.IsAbs(name) && err == nil {
		name = rel
	}
	// A pipe would wait for its writer.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, refused("There is no file %q in the working folder.", name)
	case err != nil:
		return none, refused("Only files inside the working folder can be sent, and %q is none.", name)
	}
	defer f.Close()
	info, err := f.Stat()
	limit := cmp.Or(o.c.account.adapter.Limits().FileOut, fileMost)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return none, refused("%q is no regular file.", name)
	case info.Size() == 0:
		return none, refused("%q is empty.", name)
	case info.Size() > limit:
		return none, refused("%q has %d bytes; at most %d can be sent here.", name, info.Size(), limit)
	}
	return spool(filepath.Join(deps.Outbox, string(id)), filepath.Base(name), io.LimitReader(f, limit))
}

// spool writes one file into a folder of its own.
func spool(folder, name string, r io.Reader) (chat.OutgoingFile, error) {
	out := chat.OutgoingFile{Path: filepath.Join(folder, "file"), Name: safeName(chat.File{Name: name})}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return out, err
	}
	w, err := os.OpenFile(out.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(w, r)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		discard(out)
	}
	return out, err
}

// discard removes a file that was spooled, with its folder.
func discard(f chat.OutgoingFile) { _ = os.RemoveAll(filepath.Dir(f.Path)) }

// deliver queues a delivery whose row is written and waits a while until it is settled.
func (p *poster) deliver(ctx context.Context, d record.Delivery) (now record.Delivery, settled bool) {
	ch := make(chan record.Delivery, 1)
	p.mu.Lock()
	if p.awaited == nil {
		p.awaited = map[record.DeliveryID]chan<- record.Delivery{}
	}
	p.awaited[d.ID] = ch
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.awaited, d.ID)
		p.mu.Unlock()
	}()
	p.add(d)
	limit := time.NewTimer(sentWithin)
	defer limit.Stop()
	select {
	case now = <-ch:
		return now, true
	case <-limit.C:
	case <-ctx.Done():
	}
	return d, false
}

// filesAreThere says whether what a delivery sends can still be read; a copy on another
// machine, or one that somebody removed, cannot.
func filesAreThere(d record.Delivery) bool {
	for _, f := range d.Out.Files {
		if _, err := os.Stat(f.Path); err != nil {
			return false
		}
	}
	return true
}

// sent tells whoever waits for a delivery what became of it, and gives up the copies of
// what it sent. A chat that takes in no files, but names them, keeps them.
func (p *poster) sent(d record.Delivery) {
	p.mu.Lock()
	if ch := p.awaited[d.ID]; ch != nil {
		ch <- d
		delete(p.awaited, d.ID)
	}
	p.mu.Unlock()
	if p.deps.adapter.Limits().FileOut > 0 {
		for _, f := range d.Out.Files {
			discard(f)
		}
	}
}
