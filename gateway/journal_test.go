package gateway

import (
	"context"
	"testing"

	"parley/store/record"
)

// rows is a store whose history has one row more at each reading.
type rows struct {
	Store
	read []record.Message
}

func (r *rows) History(context.Context, record.SessionID) ([]record.Message, error) {
	r.read = append(r.read, record.Message{Seq: int64(len(r.read) + 2)})
	return r.read, nil
}

// What the start of a turn has read is its first history, without a reading of its own;
// whoever joined since is in the second.
func TestTheOpeningIsReadOnce(t *testing.T) {
	s := &rows{}
	j := &journal{store: s, opening: &record.Started{Session: record.Session{ID: "s"}, History: []record.Message{{Seq: 1}}}}
	for i, want := range []struct {
		newest int64
		reads  int
	}{{1, 0}, {2, 1}, {3, 2}} {
		if i == 0 {
			if session, err := j.Session(t.Context()); err != nil || session.ID != "s" {
				t.Errorf("%+v, %v", session, err)
			}
		}
		got, err := j.History(t.Context())
		if err != nil || len(got) == 0 || got[len(got)-1].Seq != want.newest || len(s.read) != want.reads {
			t.Errorf("history %d: %+v after %d readings, %v", i+1, got, len(s.read), err)
		}
	}
}
