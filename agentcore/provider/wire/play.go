package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"parley/agentcore/llm"
)

// Progress is how far an answer is.
type Progress uint8

// The progress of an answer.
const (
	Running  Progress = iota
	Settling          // the server has said why it stopped; the usage may follow
	Over              // nothing more will come
)

// Fold turns the events of an answer into ours. A fold is pure: it does no I/O and
// knows no clock.
type Fold interface {
	// Add takes one event. What it returns is valid until the next call.
	Add(raw []byte) ([]llm.Event, error)
	Progress() Progress
	// End concludes the answer; the last event is llm.Finished. It fails if the
	// server has not said that the answer is complete; done: it said [DONE], or sent
	// its answer as one whole JSON document.
	End(done bool) ([]llm.Event, error)
}

// ErrCut is the error of an answer that ended before the server said so.
var ErrCut = &llm.Error{Kind: llm.KindNetwork, Message: "the answer was cut off"}

// errEmpty is the error of an answer without any event (PST-017).
var errEmpty = &llm.Error{Kind: llm.KindNetwork, Message: "the server sent an empty answer"}

// Play folds the events that next returns until io.EOF, which is the end of good
// answers and of cut ones alike, and emits what comes out. It returns nil when the
// answer is complete or emit refused an event.
func (x *Exchange) Play(next func() ([]byte, error), f Fold, emit func(llm.Event) bool) error {
	some := false
	for f.Progress() != Over {
		raw, err := next()
		if err != nil {
			if f.Progress() == Running && !x.done && !errors.Is(err, io.EOF) {
				return err
			}
			break
		}
		some = true
		events, err := f.Add(raw)
		if !each(events, emit) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.Progress() == Settling {
			x.watch.shorten(settleTime)
		}
	}
	if !some {
		return errEmpty
	}
	events, err := f.End(x.done)
	if err != nil {
		return err
	}
	if each(events, emit) {
		x.drain()
	}
	return nil
}

func each(events []llm.Event, emit func(llm.Event) bool) bool {
	for _, ev := range events {
		if !emit(ev) {
			return false
		}
	}
	return true
}

// drain reads what little is left behind the answer, so that the connection can be
// used again; a server that does not end there is left after 50 ms.
func (x *Exchange) drain() {
	x.watch.shorten(drainTime)
	_, _ = io.Copy(io.Discard, io.LimitReader(x.body, 4096))
}

// Events reads the events of a body that Endpoint.Do returned, for clients without
// a library.
func Events(body io.Reader) func() ([]byte, error) {
	lines := bufio.NewReader(body)
	return func() ([]byte, error) {
		for {
			line, err := lines.ReadBytes('\n')
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
			switch {
			case ok && string(data) == "[DONE]":
				return nil, io.EOF
			case ok:
				return data, nil
			case err != nil:
				return nil, err
			}
		}
	}
}

// Failure makes what ended a request to the model a *llm.Error without secrets.
func (e *Endpoint) Failure(x *Exchange, model llm.ModelID, err error) *llm.Error {
	own, silent := (*llm.Error)(nil), x.silence()
	switch {
	case silent != nil:
		own = &llm.Error{Kind: llm.KindTimeout, Message: silent.Error(), Err: silent}
	case errors.As(err, &own):
		copied := *own
		own = &copied
	default:
		own = &llm.Error{Kind: llm.KindNetwork, Message: networkMessage(err), Err: err}
	}
	own.Model = model
	own.Message = scrub(own.Message, e.APIKey)
	return own
}
