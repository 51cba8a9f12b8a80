package fakeslack

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxBody is what is read of a call.
const maxBody = 4 << 20

// answer is what a method answers beside "ok".
type answer map[string]any

// request is one decoded call.
type request struct {
	*http.Request
	method string
	token  string
	params map[string]string
}

// decode reads parameters from the query and from a form or JSON body; the token
// from the header or the form.
func decode(w http.ResponseWriter, r *http.Request, method string) (*request, error) {
	req := &request{Request: r, method: method, params: map[string]string{}}
	req.token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return req, refuse("request_timeout")
		}
		var fields map[string]json.RawMessage
		if len(body) > 0 && string(body) != "null" && json.Unmarshal(body, &fields) != nil {
			return req, refuse("invalid_json")
		}
		for name, raw := range fields {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			req.params[name] = text
		}
		return req, nil
	}
	if err := r.ParseForm(); err != nil {
		return req, refuse("invalid_form_data")
	}
	for name, values := range r.Form {
		req.params[name] = values[0]
	}
	if t := req.params["token"]; req.token == "" {
		req.token = t
	}
	return req, nil
}

func (r *request) int(name string, otherwise int) int {
	if n, err := strconv.Atoi(r.params[name]); err == nil {
		return n
	}
	return otherwise
}

func (r *request) bool(name string) bool { return r.params[name] == "true" || r.params[name] == "1" }

// refusal is an answer with "ok": false.
type refusal struct {
	Status     int
	Word       string
	RetryAfter int // seconds
	Needed     string
	Provided   string
	Messages   []string
}

func (e *refusal) Error() string { return e.Word }

func refuse(word string) *refusal { return &refusal{Word: word} }

// respond writes an answer or a refusal: HTTP 200 both, but for a rate limit.
func respond(w http.ResponseWriter, out answer, err error) {
	body := answer{"ok": true}
	for k, v := range out {
		body[k] = v
	}
	status := http.StatusOK
	if err != nil {
		no, ok := errors.AsType[*refusal](err)
		if !ok {
			no = refuse("internal_error")
		}
		body = answer{"ok": false, "error": no.Word}
		if no.Needed != "" {
			body["needed"], body["provided"] = no.Needed, no.Provided
		}
		if len(no.Messages) > 0 {
			body["response_metadata"] = map[string]any{"messages": no.Messages}
		}
		if no.Status != 0 {
			status = no.Status
		}
		if no.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(no.RetryAfter))
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func containsAny(list, any []string) bool {
	return slices.ContainsFunc(any, func(s string) bool { return slices.Contains(list, s) })
}
