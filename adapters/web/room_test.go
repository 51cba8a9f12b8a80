package web

import (
	"testing"

	"parley/gateway/chat"
)

// changed says whether the pages were woken since version, and how many entries
// they get.
func changed(r *room, version int64) (int64, int) {
	u, _ := r.since(version)
	return u.Version, len(u.Entries)
}

// An edit that shows the same content wakes nobody (STR-005, STR-018).
func TestSameContentWakesNobody(t *testing.T) {
	r := newRoom("boot", func(s string) string { return s })
	list := []chat.Entry{{ID: "1", Text: "", Live: true}}
	r.merge(list)
	v, _ := changed(r, 0)
	r.merge([]chat.Entry{{ID: "1", Text: "", Live: true}})
	if now, _ := changed(r, v); now != v {
		t.Error("the same list woke the pages")
	}
	if !r.setLive("1", chat.Entry{Text: "a"}) {
		t.Fatal("the entry is live")
	}
	v, n := changed(r, v)
	if n != 1 {
		t.Errorf("%d entries changed", n)
	}
	_, woken := r.since(v)
	r.setLive("1", chat.Entry{Text: "a"})
	select {
	case <-woken:
		t.Error("the same text woke the pages")
	default:
	}
	r.setLive("1", chat.Entry{Text: "ab"})
	<-woken
}

// A page that was slow gets the newest text once, not every step to it (STR-013).
func TestSlowPageGetsTheNewest(t *testing.T) {
	r := newRoom("boot", func(s string) string { return s })
	r.merge([]chat.Entry{{ID: "1", Live: true}, {ID: "2", Text: "other"}})
	v, _ := changed(r, 0)
	for _, text := range []string{"a", "ab", "abc"} {
		r.setLive("1", chat.Entry{Text: text})
	}
	u, _ := r.since(v)
	if len(u.Entries) != 1 || u.Entries[0].HTML != "abc" || u.Order != nil {
		t.Errorf("got %+v", u)
	}
	if r.setLive("2", chat.Entry{Text: "x"}) || r.setLive("3", chat.Entry{}) {
		t.Error("an entry that is not live was changed in memory")
	}
}
