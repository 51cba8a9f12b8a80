package wire

import (
	"strings"
	"sync"

	"go.uber.org/zap"

	"parley/agentcore/llm"
)

// Lesson is what the wording of a refusal teaches about a model: all words occur,
// in lower case. Q is a set of bits, what has to be left out or said differently.
type Lesson[Q ~uint] struct {
	Words []string
	Quirk Q
	// Session: it holds for one conversation, whose history holds what was refused,
	// and not for the model.
	Session bool
}

// maxSessions bounds the conversations that are remembered; one that is forgotten
// costs one more refusal.
const maxSessions = 4096

// Lessons are what a server's refusals have taught. They are safe for concurrent
// use.
type Lessons[Q ~uint] struct {
	table []Lesson[Q]
	log   *zap.Logger

	mu       sync.Mutex
	models   map[llm.ModelID]Q
	sessions map[session]Q
}

type session struct {
	model llm.ModelID
	key   string
}

// NewLessons makes lessons by a table, of which the first row that fits wins.
func NewLessons[Q ~uint](table []Lesson[Q], log *zap.Logger) *Lessons[Q] {
	return &Lessons[Q]{table: table, log: log, models: map[llm.ModelID]Q{}, sessions: map[session]Q{}}
}

// Of returns what is known about how to put this request.
func (l *Lessons[Q]) Of(req *llm.Request) Q {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.models[req.Model] | l.sessions[session{req.Model, req.CacheKey}]
}

// Learn says whether the refusal of the request has taught something new.
func (l *Lessons[Q]) Learn(req *llm.Request, e *llm.Error) bool {
	row := l.row(e)
	if row == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	where := session{req.Model, req.CacheKey}
	if (l.models[req.Model]|l.sessions[where])&row.Quirk == row.Quirk {
		return false
	}
	if row.Session {
		if len(l.sessions) >= maxSessions {
			clear(l.sessions)
		}
		l.sessions[where] |= row.Quirk
	} else {
		l.models[req.Model] |= row.Quirk
	}
	l.log.Info("the model's requests are changed after a refusal",
		zap.String("model", string(req.Model)), zap.Bool("session", row.Session), zap.String("refusal", e.Message))
	return true
}

func (l *Lessons[Q]) row(e *llm.Error) *Lesson[Q] {
	if e.Kind != llm.KindMalformed {
		return nil
	}
	msg := strings.ToLower(e.Message)
	for i := range l.table {
		if containsAll(msg, l.table[i].Words) {
			return &l.table[i]
		}
	}
	return nil
}

func containsAll(s string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}
