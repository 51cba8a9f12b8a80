package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// fetchLimit bounds how long a message waits for what is attached to it.
	fetchLimit = 2 * time.Minute
	// fetchTries is how often a file is asked for.
	fetchTries = 3
	// fileMost bounds a file where the platform does not.
	fileMost = 100 << 20
	// fileFolder is where files lie in a conversation's folder.
	fileFolder = "files"
)

// Workspace is where a conversation's tools work, each in a folder of its own;
// tool.Workspace is one.
type Workspace interface {
	Folder(c record.ConversationID) (string, error)
}

// Transcriber writes down what a recording says. name ends in the kind of file.
type Transcriber interface {
	Transcribe(ctx context.Context, name string, audio io.Reader) (string, error)
}

// fetching is the child that fetches what is attached to one message. The message
// waits for it in the inbox.
type fetching struct {
	seq    int64
	cancel context.CancelFunc
}

// fetched is what came of it.
type fetched struct {
	seq    int64
	files  []chat.File
	spoken []string // what was said in voice notes
	told   []string // what the sender should know
}

func (fetched) isItem() {}

// fetchFirst says whether a message has to wait for what is attached to it, and sees to
// it that it is fetched. The copies are what tools and models read: a platform keeps a
// file for a short time only, and some hand it out once.
func (c *conversation) fetchFirst(ctx context.Context, it record.InboxItem, ev chat.MessageReceived) bool {
	if c.g.deps.Workspace == nil || !slices.ContainsFunc(ev.Files, unfetched) {
		return false
	}
	if c.fetching != nil {
		return true
	}
	fctx, cancel := context.WithTimeout(ctx, fetchLimit)
	c.fetching = &fetching{seq: it.Seq, cancel: cancel}
	c.children.Go(func() {
		defer cancel()
		f := c.fetch(fctx, ev)
		f.seq = it.Seq
		c.box.put(f)
	})
	return true
}

func unfetched(f chat.File) bool { return f.Path == "" && f.Problem == "" }

// fetch is the door of the child.
func (c *conversation) fetch(ctx context.Context, ev chat.MessageReceived) (out fetched) {
	out.files = slices.Clone(ev.Files)
	defer func() {
		if r := recover(); r != nil {
			err := c.g.panicked("fetching of files", r)
			for i := range out.files {
				out.files[i].Problem = cmp.Or(out.files[i].Problem, "it could not be fetched")
			}
			out.told = append(out.told, "⚠️ "+err.Error())
		}
	}()
	for i := range out.files {
		if f := &out.files[i]; unfetched(*f) {
			c.fetchOne(ctx, ev, i, f, &out)
		}
	}
	return out
}

func (c *conversation) fetchOne(ctx context.Context, ev chat.MessageReceived, i int, f *chat.File, out *fetched) {
	place := fmt.Sprintf("%x-%s", fingerprint(ev.Address, ev.Message, i), safeName(*f))
	err := c.copyIn(ctx, f, place)
	if err != nil {
		c.log.Warn("a file was not fetched", zap.Error(err))
		f.Problem = problemOf(err)
		out.told = append(out.told, fmt.Sprintf("📎 I could not read “%s”: %s.", inert(clip(f.Name, 60)), f.Problem))
		return
	}
	if !f.Voice {
		return
	}
	if c.g.deps.Transcriber == nil {
		f.Problem = "speech that nobody has written down"
		out.told = append(out.told, "🎙 I cannot listen to voice notes here: the owner has to name a model in `transcription.model`. Please write it.")
		return
	}
	text, err := c.transcribe(ctx, f.Path)
	if text == "" {
		c.log.Warn("a voice note was not transcribed", zap.Error(err))
		f.Problem = "speech that could not be understood"
		out.told = append(out.told, "🎙 I could not understand this voice note. Please try once more, or write it.")
		return
	}
	out.spoken = append(out.spoken, text)
}

// fetchError carries what people are told.
type fetchError struct{ said string }

func (e *fetchError) Error() string { return "gateway: " + e.said }

func problemOf(err error) string {
	var said *fetchError
	var rejected *chat.RejectedError
	switch {
	case errors.As(err, &said):
		return said.said
	case errors.As(err, &rejected):
		return "the platform does not hand it over"
	case errors.Is(err, chat.ErrGone):
		return "the platform does not have it any more"
	}
	return "it could not be fetched; send it again"
}

// copyIn puts a file into the conversation's folder, complete or not at all, and
// completes what is known of it.
func (c *conversation) copyIn(ctx context.Context, f *chat.File, name string) error {
	opener, ok := c.account.adapter.(chat.FileOpener)
	if !ok {
		return &fetchError{"this chat hands over no files"}
	}
	limit := cmp.Or(c.account.adapter.Limits().FileIn, fileMost)
	if f.Size > limit {
		return tooLarge(limit)
	}
	folder, err := c.g.deps.Workspace.Folder(c.fence.Conversation)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(fileFolder, 0o700); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := download(ctx, opener, f, root, path.Join(fileFolder, name), limit)
		var said *fetchError
		var rejected *chat.RejectedError
		if err == nil || errors.As(err, &said) || errors.As(err, &rejected) || errors.Is(err, chat.ErrGone) || try == fetchTries || ctx.Err() != nil {
			return err
		}
		pause(ctx, time.Duration(try)*time.Second)
	}
}

func tooLarge(limit int64) error {
	return &fetchError{fmt.Sprintf("it is larger than the %d MB that I can take in here", limit>>20)}
}

func download(ctx context.Context, from chat.FileOpener, f *chat.File, root *os.Root, name string, limit int64) error {
	r, err := from.OpenFile(ctx, *f)
	if err != nil {
		return err
	}
	defer r.Close()
	part := path.Join(fileFolder, partPrefix+rand.Text())
	w, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = root.Remove(part) }() // gone if it was renamed
	var head bytes.Buffer
	n, err := io.Copy(io.MultiWriter(w, &capped{w: &head, left: 512}), io.LimitReader(r, limit+1))
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if n > limit {
		return tooLarge(limit)
	}
	if err := root.Rename(part, name); err != nil {
		return err
	}
	f.Path, f.Size = name, n
	if f.MIME == "" || f.MIME == "application/octet-stream" {
		f.MIME, _, _ = mime.ParseMediaType(http.DetectContentType(head.Bytes()))
	}
	return nil
}

// capped takes the first bytes and lets the rest go.
type capped struct {
	w    io.Writer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *conversation) transcribe(ctx context.Context, name string) (string, error) {
	folder, err := c.g.deps.Workspace.Folder(c.fence.Conversation)
	if err != nil {
		return "", err
	}
	f, err := os.OpenInRoot(folder, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := c.g.deps.Transcriber.Transcribe(ctx, path.Base(name), f)
	return strings.TrimSpace(text), err
}

// onFetched writes down what came of it: the message then stands in the inbox with the
// copies' names and with what was spoken in it. One in which there is nothing to read
// ends with a word about that.
func (c *conversation) onFetched(ctx context.Context, f fetched) {
	c.fetching = nil
	i := slices.IndexFunc(c.inbox, func(x record.InboxItem) bool { return x.Seq == f.seq })
	if i < 0 {
		return // withdrawn meanwhile
	}
	it := c.inbox[i]
	ev, err := it.Event()
	m, ok := ev.(chat.MessageReceived)
	if err != nil || !ok {
		return
	}
	m.Files = f.files
	for _, s := range f.spoken {
		m.Text = strings.TrimSpace(m.Text + "\n" + spokenMark + s)
	}
	var replies []record.Delivery
	if len(f.told) > 0 {
		replies = append(replies, c.reply(it, m.Origin, strings.Join(f.told, "\n")))
	}
	if m.Text == "" && !slices.ContainsFunc(m.Files, func(f chat.File) bool { return f.Problem == "" }) {
		c.end(ctx, "nothing in it could be read", record.NoEffect{}, replies, it)
		return
	}
	if it.Kind, it.Payload, err = chat.Encode(m); err != nil {
		return
	}
	if c.end(ctx, "", record.Rewrite{Item: it}, replies) {
		c.replace(it)
	}
}

// spokenMark stands before what was said and not typed: it may be misheard, and it is
// no command.
const spokenMark = "(spoken) "

// fingerprint makes names of files that are each message's own, and the same again when
// a fetch is repeated.
func fingerprint(a chat.Address, m chat.MessageID, i int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", a.Account, a.Chat, m, i))
	return sum[:4]
}

// safeName is a file's name with nothing in it that a path, a shell or a model could
// take for something else.
func safeName(f chat.File) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, path.Base(strings.ReplaceAll(f.Name, "\\", "/")))
	name = strings.Trim(name, "._")
	ext := path.Ext(name)
	if len(ext) > 12 {
		ext = ""
	}
	stem := []rune(strings.TrimSuffix(name, ext))
	if len(stem) == 0 {
		stem = []rune("file")
	}
	return string(stem[:min(len(stem), 60)]) + ext
}
