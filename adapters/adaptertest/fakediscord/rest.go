package fakediscord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Request is one REST call as it arrived. Path has no "/api/v9" and no query.
type Request struct {
	Method, Path string
	Query        string
	Body         json.RawMessage // payload_json of a multipart body
	At           time.Time
}

// request is a call on its way through a handler.
type request struct {
	Request
	query url.Values
	parts []string // of the path, as the route's pattern captured them
	files []Attachment
}

// refusal is an error as Discord answers it.
type refusal struct {
	status  int
	code    int
	message string
	errors  object
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %d %s", e.status, e.code, e.message) }

func refuse(status, code int, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

// invalid is a 400 about one field.
func invalid(field, code, message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: 50035, message: "Invalid Form Body",
		errors: object{field: object{"_errors": []object{{"code": code, "message": message}}}}}
}

// The usual refusals.
func unknownChannel() *refusal { return refuse(http.StatusNotFound, 10003, "Unknown Channel") }
func unknownMessage() *refusal { return refuse(http.StatusNotFound, 10008, "Unknown Message") }
func missingAccess() *refusal  { return refuse(http.StatusForbidden, 50001, "Missing Access") }
func missingPermission() *refusal {
	return refuse(http.StatusForbidden, 50013, "Missing Permissions")
}

// route is one endpoint.
type route struct {
	method  string
	pattern *regexp.Regexp
	open    bool // the token in the path is enough
	do      func(*Server, *request) (any, error)
}

func at(method, path string, do func(*Server, *request) (any, error)) route {
	p := regexp.MustCompile(`^` + strings.NewReplacer("{id}", `([0-9]{15,20})`, "{word}", `([^/]+)`).Replace(path) + `$`)
	return route{method, p, strings.HasPrefix(path, "/webhooks") || strings.HasPrefix(path, "/interactions"), do}
}

// routes lists what there is.
func routes() []route {
	return []route{
		at("GET", "/gateway", (*Server).getGateway),
		at("GET", "/gateway/bot", (*Server).getGateway),
		at("GET", "/users/@me", func(*Server, *request) (any, error) { return botUser(), nil }),
		at("GET", "/users/@me/guilds", (*Server).getGuilds),
		at("POST", "/users/@me/channels", (*Server).openDirect),
		at("GET", "/applications/@me", (*Server).getApplication),
		at("GET", "/applications/{id}/commands", (*Server).getCommands),
		at("PUT", "/applications/{id}/commands", (*Server).putCommands),
		at("GET", "/channels/{id}", (*Server).getChannel),
		at("PATCH", "/channels/{id}", (*Server).patchChannel),
		at("GET", "/channels/{id}/messages", (*Server).listMessages),
		at("POST", "/channels/{id}/messages", (*Server).createMessage),
		at("GET", "/channels/{id}/messages/{id}", (*Server).getMessage),
		at("PATCH", "/channels/{id}/messages/{id}", (*Server).editMessage),
		at("DELETE", "/channels/{id}/messages/{id}", (*Server).deleteMessage),
		at("PUT", "/channels/{id}/messages/{id}/reactions/{word}/@me", (*Server).addReaction),
		at("DELETE", "/channels/{id}/messages/{id}/reactions/{word}/@me", (*Server).removeReaction),
		at("POST", "/channels/{id}/messages/{id}/threads", (*Server).startThread),
		at("POST", "/channels/{id}/threads", (*Server).openThread),
		at("POST", "/channels/{id}/typing", (*Server).startTyping),
		at("POST", "/interactions/{id}/{word}/callback", (*Server).callback),
		at("POST", "/webhooks/{id}/{word}", (*Server).followUp),
		at("GET", "/webhooks/{id}/{word}/messages/{word}", (*Server).getResponse),
		at("PATCH", "/webhooks/{id}/{word}/messages/{word}", (*Server).editResponse),
		at("DELETE", "/webhooks/{id}/{word}/messages/{word}", (*Server).deleteResponse),
	}
}

// maxBody is what Discord takes in one request.
const maxBody = 25 << 20

// serveAPI takes one call through decoding, limits, faults and its handler.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	req, err := decode(r, path)
	fault := s.begin(req)
	s.pause(r.Context(), s.opt.latency/2)
	if fault != nil && fault.Late {
		s.mu.Lock()
		s.fail.late = append(s.fail.late, func() { _, _ = s.answer(httptest.NewRecorder(), r, req) }) // nobody is there to be answered
		s.mu.Unlock()
	}
	if fault != nil && !fault.AfterEffect {
		s.misbehave(w, r, fault)
		return
	}
	var result any
	if err == nil {
		var limited *tooMany
		if result, err = s.answer(w, r, req); errors.As(err, &limited) {
			limited.write(w)
			return
		}
	}
	s.pause(r.Context(), s.opt.latency-s.opt.latency/2)
	if fault != nil {
		s.misbehave(w, r, fault)
		return
	}
	respond(w, result, err)
}

// pause waits for d, or until the client or the server goes away.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.closing:
	}
}

// answer finds the endpoint and runs it under the lock.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rt := range s.routes {
		m := rt.pattern.FindStringSubmatch(req.Path)
		if m == nil || rt.method != req.Method {
			continue
		}
		req.parts = m[1:]
		if !rt.open && r.Header.Get("Authorization") != "Bot "+s.opt.token {
			return nil, refuse(http.StatusUnauthorized, 0, "401: Unauthorized")
		}
		if !strings.HasPrefix(r.UserAgent(), "DiscordBot (") {
			s.violate(req, "the user agent is not DiscordBot (URL, version), which is blocked")
		}
		if err := s.limiter.take(req, s.opt.now(), w.Header()); err != nil {
			s.record.limited++
			return nil, err
		}
		result, err := rt.do(s, req)
		// That a thread is there already is what a client asks in order to learn.
		if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusBadRequest && refused.code != threadExists {
			s.record.rejected = append(s.record.rejected, fmt.Sprintf("%s %s: %s %v", req.Method, req.Path, refused.message, refused.errors))
		}
		s.touch()
		return result, err
	}
	s.violate(req, "there is no such endpoint")
	return nil, refuse(http.StatusNotFound, 0, "404: Not Found")
}

func decode(r *http.Request, path string) (*request, error) {
	req := &request{Request: Request{Method: r.Method, Path: path, Query: r.URL.RawQuery, At: time.Now()}, query: r.URL.Query()}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return req, refuse(http.StatusBadRequest, 0, "400: Bad Request")
	}
	if len(body) > maxBody {
		return req, refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
	}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		return req, req.multipart(body, params["boundary"])
	}
	if len(body) > 0 && kind != "application/json" || len(body) > 0 && !json.Valid(body) {
		return req, refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	req.Body = body
	return req, nil
}

func (r *request) multipart(body []byte, boundary string) error {
	mr := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := mr.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return refuse(http.StatusBadRequest, 0, "400: Bad Request")
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return refuse(http.StatusBadRequest, 0, "400: Bad Request")
		}
		if p.FormName() == "payload_json" {
			r.Body = content
			continue
		}
		r.files = append(r.files, Attachment{Filename: p.FileName(), Size: len(content), MIME: p.Header.Get("Content-Type"), content: content})
	}
}

// into decodes the body. Fields that Discord does not know are a violation.
func (s *Server) into(r *request, v any) error {
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if strings.Contains(err.Error(), "unknown field") {
			s.violate(r, err.Error())
			if err = json.Unmarshal(r.Body, v); err == nil {
				return nil
			}
		}
		return refuse(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	return nil
}

// respond writes a result, or an error with Discord's code.
func respond(w http.ResponseWriter, result any, err error) {
	w.Header().Set("Content-Type", "application/json")
	var no *refusal
	switch {
	case errors.As(err, &no):
		w.WriteHeader(no.status)
		out := object{"message": no.message, "code": no.code}
		if no.errors != nil {
			out["errors"] = no.errors
		}
		_ = json.NewEncoder(w).Encode(out)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_ = json.NewEncoder(w).Encode(result)
	}
}

func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64)
	return n
}

func (s *Server) getGateway(r *request) (any, error) {
	out := object{"url": "ws://" + s.listener.Addr().String() + "/gateway"}
	if strings.HasSuffix(r.Path, "/bot") {
		out["shards"] = 1
		out["session_start_limit"] = object{"total": 1000, "remaining": 1000 - s.gateway.identified, "reset_after": 3600000, "max_concurrency": 1}
	}
	return out, nil
}

func (s *Server) getGuilds(*request) (any, error) {
	guilds := []object{}
	for id, name := range s.world.guilds {
		guilds = append(guilds, object{"id": id, "name": name, "permissions": strconv.FormatInt(s.record.permissions(), 10)})
	}
	return guilds, nil
}

// The bits of an application's flags.
const contentLimited = 1 << 19

func (s *Server) getApplication(*request) (any, error) {
	flags := 0
	if s.opt.content {
		flags |= contentLimited
	}
	return object{"id": ApplicationID, "name": "Parley", "flags": flags, "bot_public": true, "bot": botUser()}, nil
}
