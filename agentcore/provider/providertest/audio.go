package providertest

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Recording is an audio file in which the server hears a text.
func Recording(text string) string { return "OggS\x00" + text }

// audioEndings are the kinds of recordings that the real API takes, and audioMost
// their bytes.
var audioEndings = []string{".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}

const audioMost = 25 << 20

// transcribe answers POST /v1/audio/transcriptions as the real API does in its JSON
// format.
func (s *Server) transcribe(w http.ResponseWriter, r *http.Request) {
	text, wrong := s.hear(r)
	if wrong == nil {
		reply(w, http.StatusOK, map[string]string{"text": text})
		return
	}
	if wrong.invalid() {
		s.update(func() {
			s.exchanges = append(s.exchanges, &Exchange{Status: wrong.status, Refusal: "transcription: " + wrong.message})
		})
	}
	reply(w, wrong.status, problem(wrong))
}

func (s *Server) hear(r *http.Request) (string, *refusal) {
	bad := func(format string, a ...any) (string, *refusal) {
		return "", &refusal{status: http.StatusBadRequest, message: fmt.Sprintf(format, a...)}
	}
	if s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key {
		return "", &refusal{status: http.StatusUnauthorized, message: "Incorrect API key provided.", code: "invalid_api_key"}
	}
	if err := r.ParseMultipartForm(audioMost); err != nil {
		return bad("no multipart form: %v", err)
	}
	for name, values := range r.MultipartForm.Value {
		if !slices.Contains([]string{"model", "language", "prompt", "response_format", "temperature"}, name) || len(values) != 1 {
			return bad("the field %s is unknown or repeated", name)
		}
	}
	if f := r.FormValue("response_format"); f != "" && f != "json" {
		return bad("this server answers in json, not in %q", f)
	}
	if m := r.FormValue("model"); m == "" || len(s.opts.Models) > 0 && !slices.Contains(s.opts.Models, m) {
		return "", &refusal{status: http.StatusNotFound, message: fmt.Sprintf("The model %q does not exist.", m), code: "model_not_found"}
	}
	files := r.MultipartForm.File["file"]
	if len(files) != 1 || len(r.MultipartForm.File) != 1 {
		return bad("there must be one file")
	}
	if !slices.Contains(audioEndings, path.Ext(files[0].Filename)) || files[0].Size > audioMost {
		return bad("the file %q is of no kind that is known, or too large", files[0].Filename)
	}
	f, err := files[0].Open()
	if err != nil {
		return bad("%v", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	text, ok := strings.CutPrefix(string(b), Recording(""))
	if err != nil || !ok {
		return bad("Audio file might be corrupted or unsupported")
	}
	return text, nil
}
