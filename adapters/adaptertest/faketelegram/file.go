package faketelegram

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	_ "image/gif"  // photos are decoded
	_ "image/jpeg" // photos are decoded
	_ "image/png"  // photos are decoded
	"net/http"
	"path"
	"strings"
)

// File is a file of a message, sent by the bot or by a person.
type File struct {
	Kind string // document (also when empty), photo or voice
	Name string
	MIME string
	Data []byte
	Size int64 // what the server says; 0: the length of Data

	id     string
	path   string
	width  int
	height int
}

// ID is the file_id, once the file was sent.
func (f *File) ID() string { return f.id }

// The real server's limits on files, in bytes.
const (
	maxDownload = 20 << 20
	maxPhoto    = 10 << 20
)

func (f *File) wire() wireFile {
	return wireFile{ID: f.id, UniqueID: "u" + f.id, Size: f.size(), Name: f.Name, MIME: f.MIME, Width: f.width, Height: f.height}
}

func (f *File) size() int64 { return cmp.Or(f.Size, int64(len(f.Data))) }

// keep gives a new file its id and its path.
func (w *world) keep(f *File) {
	if f.id != "" {
		return
	}
	w.lastFile++
	f.id = fmt.Sprintf("file-%d", w.lastFile)
	f.path = fmt.Sprintf("%ss/file_%d%s", cmp.Or(f.Kind, "document"), w.lastFile, path.Ext(f.Name))
	w.files[f.id], w.paths[f.path] = f, f
}

// fileOf finds the file of a send call: a part of the body or a known file_id.
func (s *Server) fileOf(r *request, kind string) (*File, error) {
	value := r.params[kind]
	part, uploaded := r.files[kind]
	if name, ok := strings.CutPrefix(value, "attach://"); ok {
		part, uploaded = r.files[name]
	}
	if !uploaded {
		s.mu.Lock()
		defer s.mu.Unlock()
		f := s.world.files[value]
		switch {
		case f != nil:
			return f, nil
		case strings.Contains(value, "://"):
			return nil, badRequest("failed to get HTTP URL content")
		}
		return nil, badRequest("wrong remote file identifier specified: Wrong string length")
	}
	f := &File{Kind: kind, Name: part.name, MIME: part.mime, Data: part.data}
	if len(f.Data) == 0 {
		return nil, badRequest("file must be non-empty")
	}
	if kind != "photo" {
		return f, nil
	}
	if len(f.Data) > maxPhoto {
		return nil, badRequest("file of size %d bytes is too big for a photo; the maximum size is %d bytes", len(f.Data), maxPhoto)
	}
	size, _, err := image.DecodeConfig(bytes.NewReader(f.Data))
	if err != nil {
		return nil, badRequest("IMAGE_PROCESS_FAILED")
	}
	if size.Width+size.Height > 10000 || size.Width > 20*size.Height || size.Height > 20*size.Width {
		return nil, badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	f.width, f.height = size.Width, size.Height
	return f, nil
}

func (s *Server) getFile(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.world.files[r.params["file_id"]]
	switch {
	case f == nil:
		return nil, badRequest("invalid file_id")
	case f.size() > maxDownload:
		return nil, badRequest("file is too big")
	}
	return wireFile{ID: f.id, UniqueID: "u" + f.id, Size: f.size(), Path: f.path}, nil
}

// serveFile answers a download; tokenPath is "<token>/<path>".
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, tokenPath string) {
	token, name, _ := strings.Cut(tokenPath, "/")
	req := &request{Request: r, method: FileDownload, params: map[string]string{"path": name}}
	fault := s.begin(req)
	s.pause(r.Context(), s.opt.latency)
	if fault != nil {
		s.misbehave(w, r, fault)
		return
	}
	s.mu.Lock()
	f := s.world.paths[name]
	s.mu.Unlock()
	switch {
	case token != s.opt.token:
		respond(w, nil, unauthorized())
	case f == nil:
		respond(w, nil, refuse(http.StatusNotFound, "Not Found", 0, 0))
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(f.Data)
	}
}
