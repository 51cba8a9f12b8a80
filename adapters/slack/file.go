package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	lib "github.com/slack-go/slack"

	"parley/gateway/chat"
)

// fileLimit bounds moving a file.
const fileLimit = 5 * time.Minute

// fileMessage begins the id of a message that is known by its file alone.
const fileMessage = "file/"

// wireFile is a file as events show it.
type wireFile struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Title   string `json:"title"`
	MIME    string `json:"mimetype"`
	Size    int64  `json:"size"`
	Mode    string `json:"mode"`
	Subtype string `json:"subtype"`
}

// attachments lists the files of a message; deleted ones are none.
func attachments(list []wireFile) []chat.File {
	var fs []chat.File
	for _, f := range list {
		if f.ID == "" || f.Mode == "tombstone" {
			continue
		}
		name := f.Name
		if name == "" {
			name = f.Title
		}
		if name == "" {
			name = f.ID
		}
		fs = append(fs, chat.File{ID: f.ID, Name: chat.OneLine(name), MIME: f.MIME, Size: f.Size, Voice: f.Subtype == "slack_audio"})
	}
	return fs
}

// OpenFile implements chat.FileOpener. The token goes to Slack and to api_base only:
// a file that somebody keeps elsewhere is refused (SEC-004).
func (a *Adapter) OpenFile(ctx context.Context, f chat.File) (io.ReadCloser, error) {
	ictx, cancel := limited(ctx)
	defer cancel()
	info, _, _, err := a.api.GetFileInfoContext(ictx, f.ID, 0, 0)
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	name := chat.OneLine(info.Name)
	where := info.URLPrivateDownload
	if where == "" {
		where = info.URLPrivate
	}
	switch {
	case int64(info.Size) > fileIn:
		return nil, &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than %d MB", name, fileIn>>20)}
	case info.IsExternal || !a.trusted(where):
		return nil, &chat.RejectedError{Reason: name + " is not kept by Slack, but somewhere else"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, &chat.RejectedError{Reason: name + " has no address"}
	}
	r.Header.Set("Authorization", "Bearer "+a.api.token.Reveal())
	resp, err := a.api.doer.Do(r)
	if err != nil {
		return nil, err
	}
	page := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") && resp.Request.URL.Path != r.URL.Path
	if resp.StatusCode == http.StatusOK && !page {
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	if page {
		return nil, &chat.RejectedError{Reason: name + " may not be read: the bot token lacks files:read, or access to the file"}
	}
	return nil, fmt.Errorf("slack: HTTP %d for a file", resp.StatusCode)
}

// uploads are the files of which it is not known whether they were shown: a message of
// a file has no metadata to tell it by. It is safe for concurrent use.
type uploads struct {
	mu    sync.Mutex
	files map[string]string // by idempotency key
}

// uploadsMost bounds what is remembered.
const uploadsMost = 1000

func newUploads() *uploads { return &uploads{files: map[string]string{}} }

func (u *uploads) doubt(key, file string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.files) >= uploadsMost {
		clear(u.files)
	}
	u.files[key] = file
}

// findUpload looks whether a file of an unknown outcome is shown in its conversation.
func (a *Adapter) findUpload(ctx context.Context, to chat.Address, key string) (_ chat.MessageID, found bool, _ error) {
	a.uploads.mu.Lock()
	id, ok := a.uploads.files[key]
	a.uploads.mu.Unlock()
	if !ok {
		return "", false, nil
	}
	info, _, _, err := a.api.GetFileInfoContext(ctx, id, 0, 0)
	if says(err, "file_not_found", "file_deleted") {
		return "", false, nil
	}
	if err != nil {
		return "", false, deliveryError(err, repeated)
	}
	shown := len(info.Shares.Public[string(to.Chat)])+len(info.Shares.Private[string(to.Chat)]) > 0
	return fileMessage + chat.MessageID(id), shown, nil
}

// trusted says whether an address may see the token.
func (a *Adapter) trusted(address string) bool {
	u, err := url.Parse(address)
	api, aerr := url.Parse(a.api.base)
	if err != nil || aerr != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	slack := u.Scheme == "https" && (host == "slack.com" || strings.HasSuffix(host, ".slack.com") || strings.HasSuffix(host, ".slack-gov.com"))
	return slack || u.Scheme == api.Scheme && strings.EqualFold(u.Host, api.Host)
}

// sendFile uploads a file in Slack's three steps. Only the last one shows it.
func (a *Adapter) sendFile(ctx context.Context, to chat.Address, f chat.OutgoingFile, key string) (chat.MessageID, error) {
	ctx, cancel := context.WithTimeout(ctx, fileLimit)
	defer cancel()
	file, err := os.Open(f.Path)
	if err != nil {
		return "", &chat.RejectedError{Reason: err.Error()}
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", &chat.RejectedError{Reason: err.Error()}
	case info.Size() == 0:
		return "", &chat.RejectedError{Reason: f.Name + " is empty, which Slack does not take"}
	case info.Size() > fileOut:
		return "", &chat.RejectedError{Reason: fmt.Sprintf("%s is larger than the %d MB that Slack takes", f.Name, fileOut>>20)}
	}
	up, err := a.api.GetUploadURLExternalContext(ctx, lib.GetUploadURLExternalParameters{FileSize: int(info.Size()), FileName: f.Name})
	if err != nil {
		return "", deliveryError(err, repeated)
	}
	if err := a.api.UploadToURL(ctx, lib.UploadToURLParameters{UploadURL: up.UploadURL, Reader: file, Filename: f.Name}); err != nil {
		return "", deliveryError(err, repeated)
	}
	_, err = a.api.CompleteUploadExternalContext(ctx, lib.CompleteUploadExternalParameters{
		Files: []lib.FileSummary{{ID: up.FileID, Title: f.Name}}, Channel: string(to.Chat), ThreadTimestamp: string(to.Thread),
	})
	if err != nil {
		if err = deliveryError(err, creates); errors.Is(err, chat.ErrAmbiguous) {
			a.uploads.doubt(key, up.FileID)
		}
		return "", err
	}
	return fileMessage + chat.MessageID(up.FileID), nil
}
