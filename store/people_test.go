package store_test

import (
	"sync"
	"testing"
	"time"

	"parley/gateway/chat"
	"parley/store/record"
)

func TestPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	if m, err := w.Member(ctx, ann); err != nil || m != nil {
		t.Fatalf("a stranger: %+v, %v", m, err)
	}
	if has, err := w.HasOwner(ctx, "fake"); err != nil || has {
		t.Fatalf("an owner: %v, %v", has, err)
	}
	w.check(w.SetMember(ctx, record.Member{ID: ann, Name: "A", Role: record.RoleUser}))
	w.check(w.SetMember(ctx, record.Member{ID: ann, Name: "Ann\x00", Role: record.RoleAdmin}))
	w.check(w.SetMember(ctx, record.Member{ID: "fake:bob", Role: record.RoleOwner}))
	w.check(w.SetMember(ctx, record.Member{ID: "fake:eve", Role: record.RoleIgnored}))
	w.check(w.SetMember(ctx, record.Member{ID: "fakeother:x", Role: record.RoleOwner}))
	if has, err := w.HasOwner(ctx, "fake"); err != nil || !has {
		t.Fatalf("no owner: %v, %v", has, err)
	}
	m, err := w.Member(ctx, ann)
	w.check(err)
	if m.Name != "Ann\uFFFD" || m.Role != record.RoleAdmin {
		t.Errorf("member %+v", m)
	}
	k := w.talk()
	admins, err := w.Admins(ctx, "fake", []chat.Person{ann, "fake:configured", "other:configured"})
	w.check(err)
	if len(admins) != 3 || admins[2].ID != "fake:configured" || admins[2].Role != record.RoleAdmin || admins[0].ID != "fake:bob" || admins[0].Conversation != "" || admins[1].ID != ann ||
		admins[1].Conversation != k.fence.Conversation || admins[1].Address != k.Conversation.Key.Address {
		t.Errorf("admins %+v", admins)
	}
	all, err := w.Members(ctx)
	w.check(err)
	if len(all) != 4 {
		t.Errorf("%d members", len(all))
	}
	w.check(w.RemoveMember(ctx, ann))
	w.want(w.RemoveMember(ctx, ann), record.ErrNotFound)
}

// ACC-001: a claim link makes one owner, once, on its platform, in its time.
func TestClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	claim := func(code string, p chat.Person) bool {
		t.Helper()
		ok, err := w.Claim(ctx, code, record.Member{ID: p, Name: "N", Role: record.RoleUser})
		w.check(err)
		return ok
	}
	at := func(code string, until time.Duration) {
		t.Helper()
		w.check(w.NewClaim(ctx, record.Pairing{Code: code, Address: chat.Address{Account: "fake/main"}, ExpiresAt: time.Now().Add(until)}))
	}
	at("LATE", -time.Second)
	at("GOOD", time.Hour)
	w.want(w.NewClaim(ctx, record.Pairing{Code: "GOOD", Address: chat.Address{Account: "fake/main"}, ExpiresAt: time.Now()}), record.ErrConflict)
	for code, p := range map[string]chat.Person{"LATE": ann, "NONE": ann, "": ann, "GOOD": "other:ann"} {
		if claim(code, p) {
			t.Errorf("%q was redeemed by %s", code, p)
		}
	}
	var wg sync.WaitGroup
	got := make([]bool, 6)
	for i := range got {
		wg.Go(func() { got[i] = claim("GOOD", chat.Person("fake:"+string(rune('a'+i)))) })
	}
	wg.Wait()
	owners := 0
	for _, ok := range got {
		if ok {
			owners++
		}
	}
	if n := query[int](w, `SELECT count(*) FROM people WHERE role = 'owner'`); owners != 1 || n != 1 {
		t.Errorf("%d claims, %d owners, want one", owners, n)
	}
}

func TestPairingDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	open := func(code string, p chat.Person) {
		t.Helper()
		ev := said(code, "let me in")
		ev.From.ID, ev.Key = p, chat.EventKey(code)
		r := w.request(ev)
		r.PairingCode = code
		_, err := w.Receive(ctx, r, func(record.AccessFacts) record.Verdict { return record.Verdict{State: record.InboxHeld, Pair: true} })
		w.check(err)
	}
	open("A", ann)
	open("B", "fake:bob")
	open("C", "fake:chief")
	w.check(w.SetMember(ctx, record.Member{ID: "fake:chief", Role: record.RoleAdmin}))
	list, err := w.Pairings(ctx)
	w.check(err)
	if len(list) != 3 || list[0].Code != "A" || list[0].Address != said("", "").Address {
		t.Errorf("requests %+v", list)
	}
	for _, c := range []struct {
		code string
		to   record.PairingState
		ok   bool
		role record.Role
	}{
		{"A", record.PairingAllowed, true, record.RoleUser},
		{"A", record.PairingIgnored, false, record.RoleUser},
		{"B", record.PairingIgnored, true, record.RoleIgnored},
		{"C", record.PairingIgnored, true, record.RoleAdmin},
	} {
		p, ok, err := w.DecidePairing(ctx, c.code, c.to)
		w.check(err)
		m, err := w.Member(ctx, p.Person)
		w.check(err)
		if ok != c.ok || m.Role != c.role {
			t.Errorf("%s to %s: %v, %+v", c.code, c.to, ok, m)
		}
	}
	open("D", "fake:dan")
	w.exec(`UPDATE pairings SET expires_at = now() WHERE code = 'D'`)
	p, ok, err := w.DecidePairing(ctx, "D", record.PairingAllowed)
	w.check(err)
	if m, _ := w.Member(ctx, "fake:dan"); ok || p.State != record.PairingExpired || m != nil {
		t.Errorf("an expired request: %v, %+v, %+v", ok, p, m)
	}
	_, _, err = w.DecidePairing(ctx, "NONE", record.PairingAllowed)
	w.want(err, record.ErrNotFound)
	w.check(w.NewClaim(ctx, record.Pairing{Code: "CLAIM", Address: chat.Address{Account: "fake/main"}, ExpiresAt: time.Now().Add(time.Hour)}))
	_, _, err = w.DecidePairing(ctx, "CLAIM", record.PairingAllowed)
	w.want(err, record.ErrNotFound)
	if _, _, err = w.DecidePairing(ctx, "A", record.PairingOpen); err == nil {
		t.Error("a request was opened again")
	}
}
