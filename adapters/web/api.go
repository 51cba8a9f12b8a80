package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
)

// maxMessage is the most bytes of one request to the API.
const maxMessage = 1 << 20

// clientID is what the page makes up for a message, a press or a stop.
var clientID = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)

// refusal is an answer that the page shows to the person.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

// Routes implements chat.Handlers: everything below "/", behind the guard.
func (a *Adapter) Routes() map[string]http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", a.index)
	mux.HandleFunc("GET /static/{file}", a.page.asset)
	mux.Handle("GET /api/events", a.members(a.events))
	mux.Handle("GET /api/transcript", a.members(a.transcript))
	mux.Handle("GET /api/sessions", a.members(a.sessions))
	mux.Handle("POST /api/messages", a.members(a.postMessage))
	mux.Handle("POST /api/buttons", a.members(a.postButton))
	mux.Handle("POST /api/stop", a.members(a.postStop))
	return map[string]http.Handler{"/": a.deps.Guard(mux)}
}

// index is the page, the way in, or the words that say where the way in is.
func (a *Adapter) index(w http.ResponseWriter, r *http.Request) {
	token := pasted(r.URL.Query().Get("token"))
	switch {
	case token != "" && a.access.redeem(token):
		a.access.grant(w, r)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case a.access.granted(r):
		a.page.document(w, "index.html", http.StatusOK, "BUILD", a.page.build)
	case token != "":
		a.page.document(w, "login.html", http.StatusUnauthorized, "NOTE", wrongToken)
	default:
		a.page.document(w, "login.html", http.StatusUnauthorized, "NOTE", "")
	}
}

// members lets in requests with the cookie and turns errors into answers.
func (a *Adapter) members(h func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error = &refusal{http.StatusUnauthorized, "Open the URL that parley printed when it started."}
		if a.access.granted(r) {
			err = h(w, r)
		}
		var no *refusal
		switch {
		case err == nil || r.Context().Err() != nil:
		case errors.As(err, &no):
			respond(w, no.status, map[string]string{"error": no.text})
		default:
			a.log.Warn("web chat request failed", zap.String("path", r.URL.Path), zap.Error(err))
			respond(w, http.StatusServiceUnavailable, map[string]string{"error": "parley cannot store this right now."})
		}
	})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// read decodes a JSON body. A body that is too large is read to its end, since a
// browser shows the answer only then.
func read[T any](r *http.Request) (T, error) {
	var v T
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return v, &refusal{http.StatusUnsupportedMediaType, "The request is not JSON."}
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
	if len(b) > maxMessage {
		_, _ = io.Copy(io.Discard, r.Body)
		return v, &refusal{http.StatusRequestEntityTooLarge, "The message is larger than 1 MB. Send it in smaller parts."}
	}
	if err != nil {
		return v, &refusal{http.StatusBadRequest, "The request was cut."}
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, &refusal{http.StatusBadRequest, "The request is not valid JSON."}
	}
	return v, nil
}

// intake is the sink, if events can be taken in now.
func (a *Adapter) intake() (chat.Sink, error) {
	sink := a.sink.Load()
	if sink == nil {
		return nil, &refusal{http.StatusServiceUnavailable, "parley is starting or stopping."}
	}
	return *sink, nil
}

func (a *Adapter) postMessage(w http.ResponseWriter, r *http.Request) error {
	in, err := read[struct{ ID, Text string }](r)
	if err != nil {
		return err
	}
	if !clientID.MatchString(in.ID) {
		return &refusal{http.StatusBadRequest, "The message has no id."}
	}
	if strings.TrimSpace(in.Text) == "" {
		return &refusal{http.StatusBadRequest, "The message is empty."}
	}
	sink, err := a.intake()
	if err != nil {
		return err
	}
	now := time.Now()
	id, err := a.deps.Timeline.Append(r.Context(), a.address, chat.Entry{Key: personKey + in.ID, From: Person, Text: in.Text, At: now})
	if err != nil {
		return err
	}
	a.show(r.Context())
	if err := sink(r.Context(), a.message(id, in.Text, now)); err != nil {
		return err
	}
	respond(w, http.StatusAccepted, map[string]chat.MessageID{"id": id})
	return nil
}

func (a *Adapter) postButton(w http.ResponseWriter, r *http.Request) error {
	in, err := read[struct {
		ID, Data string
		Message  chat.MessageID
	}](r)
	if err != nil {
		return err
	}
	if !clientID.MatchString(in.ID) {
		return &refusal{http.StatusBadRequest, "The press has no id."}
	}
	if !a.room.hasButton(in.Message, in.Data) {
		return &refusal{http.StatusConflict, "This button is no longer there."}
	}
	sink, err := a.intake()
	if err != nil {
		return err
	}
	o := a.origin("button/"+string(mainChat)+"/"+string(in.Message)+"/"+in.ID, time.Now())
	o.Message = in.Message
	if err := sink(r.Context(), chat.ButtonPressed{Origin: o, Data: in.Data, Ack: in.ID}); err != nil {
		return err
	}
	respond(w, http.StatusAccepted, map[string]string{"id": in.ID})
	return nil
}

func (a *Adapter) postStop(w http.ResponseWriter, r *http.Request) error {
	in, err := read[struct{ ID string }](r)
	if err != nil {
		return err
	}
	if !clientID.MatchString(in.ID) {
		return &refusal{http.StatusBadRequest, "The press has no id."}
	}
	sink, err := a.intake()
	if err != nil {
		return err
	}
	if err := sink(r.Context(), chat.StopPressed{Origin: a.origin("stop/"+string(mainChat)+"/"+in.ID, time.Now())}); err != nil {
		return err
	}
	respond(w, http.StatusAccepted, map[string]string{"id": in.ID})
	return nil
}

func (a *Adapter) transcript(w http.ResponseWriter, r *http.Request) error {
	if err := a.refresh(r.Context()); err != nil {
		return err
	}
	u, _ := a.room.since(0)
	respond(w, http.StatusOK, u)
	return nil
}

func (a *Adapter) sessions(w http.ResponseWriter, r *http.Request) error {
	key := chat.KeyOf(a.origin("", time.Time{}), chat.ScopeThread)
	list, err := a.deps.Directory.Sessions(r.Context(), key, sessionsShown)
	if err != nil {
		return err
	}
	if list == nil {
		list = []chat.SessionInfo{}
	}
	respond(w, http.StatusOK, list)
	return nil
}

func (a *Adapter) origin(key string, at time.Time) chat.Origin {
	return chat.Origin{Key: chat.EventKey(key), Address: a.address, Kind: chat.Direct, From: chat.User{ID: Person}, At: at}
}

// message is the event of an entry: its key follows from the entry, so that
// offering it again changes nothing.
func (a *Adapter) message(id chat.MessageID, text string, at time.Time) chat.MessageReceived {
	o := a.origin("message/"+string(mainChat)+"/"+string(id), at)
	o.Message = id
	return chat.MessageReceived{Origin: o, Text: text, ForBot: true}
}
