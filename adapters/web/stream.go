package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// pingEvery is how often a silent stream shows that it lives; the page gives it
	// up after three times that.
	pingEvery = 15 * time.Second
	// writeWithin is how long a page may take to take in one event.
	writeWithin = 20 * time.Second
)

// hello is what a page learns first on each connection.
type hello struct {
	Build string `json:"build"`
	// Fresh says that the page shall forget what it knew: this is another life of
	// the room.
	Fresh bool `json:"fresh"`
}

// events streams what changes. A page that comes back with the id of the last
// event it saw gets what is newer; after a restart it gets everything.
func (a *Adapter) events(w http.ResponseWriter, r *http.Request) error {
	if err := a.refresh(r.Context()); err != nil {
		return err
	}
	version := a.resumeAt(r)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	out := &eventWriter{w: w, rc: http.NewResponseController(w)}
	out.write("hello", "", hello{a.page.build, version == 0})
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for out.err == nil {
		u, changed := a.room.since(version)
		out.write("update", a.room.boot+"."+strconv.FormatInt(u.Version, 10), u)
		version = u.Version
		for waiting := true; waiting && out.err == nil; {
			select {
			case <-changed:
				waiting = false
			case <-ping.C:
				out.write("ping", "", struct{}{})
			case <-r.Context().Done():
				return nil
			}
		}
	}
	return nil // the page went away
}

// resumeAt reads where a page left off; 0 is the beginning.
func (a *Adapter) resumeAt(r *http.Request) int64 {
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = r.URL.Query().Get("after")
	}
	boot, version, ok := strings.Cut(id, ".")
	n, err := strconv.ParseInt(version, 10, 64)
	if !ok || err != nil || n < 0 || boot != a.room.boot {
		return 0
	}
	return n
}

// eventWriter writes server-sent events until the first error.
type eventWriter struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

func (e *eventWriter) write(event, id string, data any) {
	if e.err != nil {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // most of it is HTML, and no HTML parser reads the stream
	if e.err = enc.Encode(data); e.err != nil {
		return
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, e.err = fmt.Fprintf(e.w, "event: %s\n%sdata: %s\n", event, id, b.Bytes()); e.err == nil {
		e.err = e.rc.Flush()
	}
}
