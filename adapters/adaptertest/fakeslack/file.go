package fakeslack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// File is a file of a message.
type File struct {
	Name string
	MIME string
	Data []byte
	// Subtype is "slack_audio" for a voice note.
	Subtype string
	// URL is where a remote file says that it is; empty: on Slack.
	URL string
}

// file is a kept file.
type file struct {
	File
	id      string
	url     string
	length  int // announced
	shared  bool
	deleted bool
	at      map[string]string // channel → ts of the message that shows it
}

// keep stores a person's file. The lock is held.
func (w *world) keep(root string, f File) *file {
	k := &file{File: f, id: w.id("F"), shared: true, at: map[string]string{}}
	k.url = root + "/files/" + k.id + "/" + url.PathEscape(f.Name)
	if f.URL != "" {
		k.url = f.URL
	}
	w.files[k.id] = k
	return k
}

func (f *file) wire() map[string]any {
	mode, external := "hosted", f.URL != ""
	if external {
		mode = "external"
	}
	shares := map[string][]map[string]string{}
	for c, ts := range f.at {
		shares[c] = append(shares[c], map[string]string{"ts": ts})
	}
	return map[string]any{
		"id": f.id, "name": f.Name, "title": f.Name, "mimetype": f.MIME, "size": len(f.Data), "mode": mode, "is_external": external,
		"subtype": f.Subtype, "url_private": f.url, "url_private_download": f.url, "shares": map[string]any{"public": shares},
	}
}

func (s *Server) filesInfo(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.world.files[r.params["file"]]
	switch {
	case f == nil:
		return nil, refuse("file_not_found")
	case f.deleted:
		return nil, refuse("file_deleted")
	}
	return answer{"file": f.wire()}, nil
}

func (s *Server) filesDelete(r *request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.world.files[r.params["file"]]
	switch {
	case f == nil:
		return nil, refuse("file_not_found")
	case f.deleted:
		return nil, refuse("file_deleted")
	}
	f.deleted = true
	s.changed.fire()
	return nil, nil
}

func (s *Server) getUploadURL(r *request) (answer, error) {
	n, err := strconv.Atoi(r.params["length"])
	if err != nil || n <= 0 {
		return nil, refuse("invalid_arguments")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &file{File: File{Name: r.params["filename"]}, id: s.world.id("F"), length: n, at: map[string]string{}}
	f.url = s.root() + "/files/" + f.id + "/" + url.PathEscape(f.Name)
	s.world.files[f.id] = f
	return answer{"upload_url": s.root() + "/upload/" + f.id, "file_id": f.id}, nil
}

// serveUpload takes the bytes of a file, raw or as a form's file.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	var data []byte
	var err error
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		part, _, ferr := r.FormFile("file")
		if ferr != nil {
			http.Error(w, ferr.Error(), http.StatusBadRequest)
			return
		}
		data, err = io.ReadAll(part)
	} else {
		data, err = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.world.files[id]
	if err != nil || f == nil || len(data) != f.length {
		http.Error(w, "the upload is not what was announced", http.StatusBadRequest)
		return
	}
	f.Data = data
	fmt.Fprintf(w, "OK - %d", len(data))
}

func (s *Server) completeUpload(r *request) (answer, error) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(r.params["files"]), &list) != nil || len(list) == 0 {
		return nil, refuse("invalid_arguments")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.world.reach(r.params["channel_id"])
	if err != nil {
		return nil, err
	}
	m := &message{ts: s.world.stamp(s.opt.now()), thread: r.params["thread_ts"], user: BotUser, bot: BotID, subtype: "file_share", at: s.opt.now()}
	out := []map[string]any{}
	for _, in := range list {
		f := s.world.files[in.ID]
		if f == nil || f.Data == nil || f.shared {
			return nil, refuse("file_not_found")
		}
		f.shared, f.at[c.ID] = true, m.ts
		m.files = append(m.files, f)
		out = append(out, map[string]any{"id": f.id, "title": in.Title})
	}
	m.text = r.params["initial_comment"]
	c.add(m)
	s.announce(c, m, nil)
	s.tell(MessageSent, c.ID, m.shown())
	return answer{"files": out}, nil
}

// serveFile is a private file: without the token it is the sign-in page.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, path string) {
	id, _, _ := strings.Cut(path, "/")
	s.mu.Lock()
	f := s.world.files[id]
	s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+s.opt.bot || !contains(s.scopes(), "files:read") {
		http.Redirect(w, r, "/signin?redir="+url.QueryEscape(r.URL.Path), http.StatusFound)
		return
	}
	if f == nil || f.deleted {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.MIME)
	_, _ = w.Write(f.Data)
}
