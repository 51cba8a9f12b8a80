package faketelegram

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is what the real server takes in one upload.
const maxBody = 50 << 20

// request is one decoded call.
type request struct {
	*http.Request
	method string
	params map[string]string
	files  map[string]upload
}

// upload is one file part of a multipart body.
type upload struct {
	name string
	mime string
	data []byte
}

// decode reads parameters from the query and from a form, JSON or multipart body.
func decode(w http.ResponseWriter, r *http.Request, method string) (*request, error) {
	req := &request{Request: r, method: method, params: map[string]string{}, files: map[string]upload{}}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody+1<<20)
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var err error
	switch {
	case kind == "application/json":
		err = req.readJSON()
	case strings.HasPrefix(kind, "multipart/"):
		err = req.readMultipart()
	default:
		err = r.ParseForm()
	}
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return req, &refusal{Code: http.StatusRequestEntityTooLarge, Description: "Request Entity Too Large"}
		}
		return req, badRequest("can't parse the body: %s", err)
	}
	for name, values := range r.Form {
		req.params[name] = values[0]
	}
	return req, nil
}

func (r *request) readJSON() error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	for name, raw := range fields {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			text = string(raw)
		}
		r.params[name] = text
	}
	return nil
}

func (r *request) readMultipart() error {
	if err := r.ParseMultipartForm(maxBody); err != nil {
		return err
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	for name, parts := range r.MultipartForm.File {
		f, err := parts[0].Open()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			return err
		}
		r.files[name] = upload{parts[0].Filename, parts[0].Header.Get("Content-Type"), data}
	}
	return nil
}

// int is a parameter that check found to be a number, 0 when it is absent.
func (r *request) int(name string) int64 {
	n, _ := strconv.ParseInt(r.params[name], 10, 64)
	return n
}

func (r *request) bool(name string) bool {
	v := strings.ToLower(r.params[name])
	return v == "true" || v == "1"
}

// json decodes a parameter that check found to be well formed.
func (r *request) json(name string, into any) {
	if raw := r.params[name]; raw != "" {
		_ = json.Unmarshal([]byte(raw), into)
	}
}

// attached says whether a parameter refers to the file part as attach://name.
func (r *request) attached(name string) bool {
	for _, v := range r.params {
		if strings.Contains(v, "attach://"+name) {
			return true
		}
	}
	return false
}

// refusal is an answer with "ok": false.
type refusal struct {
	Code        int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  *struct {
		RetryAfter int   `json:"retry_after,omitempty"`
		MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
	} `json:"parameters,omitempty"`
}

func (e *refusal) Error() string { return e.Description }

func refuse(code int, description string, retryAfter int, migrateTo int64) *refusal {
	e := &refusal{Code: code, Description: description}
	if retryAfter != 0 || migrateTo != 0 {
		e.Parameters = &struct {
			RetryAfter int   `json:"retry_after,omitempty"`
			MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
		}{retryAfter, migrateTo}
	}
	return e
}

func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "Bad Request: "+fmt.Sprintf(format, args...), 0, 0)
}

func tooManyRequests(seconds int) *refusal {
	return refuse(http.StatusTooManyRequests, fmt.Sprintf("Too Many Requests: retry after %d", seconds), seconds, 0)
}

// respond writes the envelope of a result or of a refusal.
func respond(w http.ResponseWriter, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	var body any = struct {
		OK     bool `json:"ok"`
		Result any  `json:"result"`
	}{true, result}
	if err != nil {
		no, ok := errors.AsType[*refusal](err)
		if !ok {
			no = refuse(http.StatusInternalServerError, "Internal Server Error: "+err.Error(), 0, 0)
		}
		if no.Parameters != nil && no.Parameters.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(no.Parameters.RetryAfter))
		}
		w.WriteHeader(no.Code)
		body = struct {
			OK bool `json:"ok"`
			*refusal
		}{false, no}
	}
	_ = json.NewEncoder(w).Encode(body)
}
