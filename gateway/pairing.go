package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// pairingCommand is the synthetic command that brings a stranger's request to
	// an admin's conversation, durable like any event.
	pairingCommand = "pairing-request"
	// pairPrefix begins the data of Allow and Ignore.
	pairPrefix = "pair:"
	// claimLife is how long a claim link is good.
	claimLife = time.Hour
)

// codeAlphabet has no characters that look alike.
const codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// newCode makes a code of eight characters: 40 random bits.
func newCode() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = codeAlphabet[int(b[i])%len(codeAlphabet)]
	}
	return string(b)
}

// ClaimLinks makes a one-time link for each account whose platform has no owner
// yet, by which the owner claims the bot, and hands it to show. Accounts that
// cannot make links are left out; one whose platform cannot be reached is tried
// again until ctx ends.
func (g *Gateway) ClaimLinks(ctx context.Context, show func(chat.AccountID, string)) error {
	left := g.sorted
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		links, failed, err := g.claimLinks(ctx, left)
		for id, link := range links {
			show(id, link)
		}
		if err != nil || len(failed) == 0 || ctx.Err() != nil {
			return err
		}
		left = failed
		pause(ctx, wait)
	}
}

// claimLinks tries once, and returns the accounts that could not be reached.
func (g *Gateway) claimLinks(ctx context.Context, accounts []*account) (links map[chat.AccountID]string, failed []*account, err error) {
	links = map[chat.AccountID]string{}
	for _, a := range accounts {
		id := a.id
		inv, ok := a.adapter.(chat.Inviter)
		if s, _ := a.status(); !ok || s == accountFailed {
			continue
		}
		owned, err := g.store.HasOwner(ctx, id.Platform())
		if err != nil {
			return links, nil, err
		}
		if owned || g.access.anyone(id.Platform()) {
			continue
		}
		p := record.Pairing{Code: claimPrefix + newCode(), Address: chat.Address{Account: id}, State: record.PairingOpen, ExpiresAt: g.now().Add(claimLife)}
		link, err := inv.InviteLink(ctx, p.Code)
		if err != nil {
			g.log.Debug("no claim link yet", zap.String("account", string(id)), zap.Error(err))
			failed = append(failed, a)
			continue
		}
		if err := g.store.NewClaim(ctx, p); err != nil {
			return links, nil, err
		}
		links[id] = link
	}
	return links, failed, nil
}

// admins are those that the configuration names.
func (a access) admins() []chat.Person {
	ps := make([]chat.Person, 0, len(a.cfg.Admins))
	for _, p := range a.cfg.Admins {
		ps = append(ps, chat.Person(p))
	}
	return ps
}

// anyone says whether the configuration lets somebody of the platform in.
func (a access) anyone(platform string) bool {
	for _, p := range append(a.cfg.Admins, a.cfg.Allow...) {
		if strings.HasPrefix(p, platform+":") {
			return true
		}
	}
	return false
}

func (c *conversation) cmdStart(ctx context.Context, in invocation) {
	if !strings.HasPrefix(in.args, claimPrefix) {
		c.answer(ctx, in, greeting(in.from.From.Name), record.NoEffect{})
		return
	}
	m := record.Member{ID: in.from.From.ID, Name: in.from.From.Name, Role: record.RoleOwner}
	ok, err := c.g.store.Claim(ctx, in.args, m)
	switch {
	case err != nil:
		c.failed(err, "claim")
	case ok:
		c.log.Info("claimed", zap.String("person", string(m.ID)))
		c.answer(ctx, in, "🔑 You are my owner now.\n\n"+greeting(in.from.From.Name), record.NoEffect{})
	case in.role.Admin():
		c.answer(ctx, in, "You are my "+string(in.role)+" already.", record.NoEffect{})
	default:
		c.answer(ctx, in, "This link was used already, or is older than an hour. Restart parley for a new one, or ask its owner.", record.NoEffect{})
	}
}

func greeting(name string) string {
	hello := "Hello"
	if name != "" {
		hello += " " + inert(name)
	}
	return hello + ", I am here. Ask me anything; `/help` lists what else I can do, `/stop` stops me."
}

// requestPairing brings a stranger's request to every admin who has a direct
// conversation, and tells the stranger once. The events' keys make it idempotent.
func (g *Gateway) requestPairing(ctx context.Context, a *account, o chat.Origin, r record.Receipt) error {
	if r.Pairing == nil {
		return nil
	}
	admins, err := g.store.Admins(ctx, o.Address.Account.Platform(), g.access.admins())
	if err != nil {
		return err
	}
	told := 0
	for _, admin := range admins {
		if admin.Conversation == "" {
			continue
		}
		ev := chat.CommandInvoked{Name: pairingCommand, Args: r.Pairing.Code + " " + r.Pairing.Name, Origin: chat.Origin{
			Key: chat.EventKey("pairing/" + r.Pairing.Code + "/" + string(admin.ID)), Address: admin.Address, Kind: chat.Direct,
			From: chat.User{ID: admin.ID, Name: admin.Name}, At: g.now(),
		}}
		if _, err := g.take(ctx, ev); err != nil {
			return err
		}
		told++
	}
	text := fmt.Sprintf("I only answer people whom my owner knows. I have told them that you asked (code `%s`); your message is kept for a day.", r.Pairing.Code)
	if told == 0 {
		text = fmt.Sprintf("I only answer people whom my owner knows. They can let you in with `parley pairing approve %s`; your message is kept for a day.", r.Pairing.Code)
	}
	cctx, cancel := context.WithTimeout(ctx, noteLimit)
	defer cancel()
	if _, err := a.adapter.Send(cctx, o.Address, chat.Outgoing{Key: "stranger/" + r.Pairing.Code, Text: text, Reply: o.Reply}); err != nil {
		g.log.Warn("a stranger could not be told", zap.Error(err))
	}
	return nil
}

// cmdPairing shows a stranger's request to an admin.
func (c *conversation) cmdPairing(ctx context.Context, in invocation) {
	code, name, _ := strings.Cut(in.args, " ")
	if !in.role.Admin() {
		c.end(ctx, "not an admin any more", record.NoEffect{}, nil, in.item)
		return
	}
	text := fmt.Sprintf("👋 **%s** wants to talk to me (code `%s`).", inert(name), inert(code))
	c.answer(ctx, in, text, record.NoEffect{}, []chat.Button{
		{Label: "Allow", Data: pairPrefix + code + ":allow", Style: chat.Primary},
		{Label: "Ignore", Data: pairPrefix + code + ":ignore"},
	})
}

// pairPressed decides a stranger's request; their kept messages are answered.
func (c *conversation) pairPressed(ctx context.Context, it record.InboxItem, ev chat.ButtonPressed) {
	code, choice, _ := strings.Cut(strings.TrimPrefix(ev.Data, pairPrefix), ":")
	if !c.roleOf(ctx, ev.From.ID).Admin() {
		c.ack(ev, "Only an admin may decide this.")
		c.end(ctx, "a button pressed by one who may not", record.NoEffect{}, nil, it)
		return
	}
	to, text := record.PairingAllowed, "✅ %s may talk to me now."
	if choice != "allow" {
		to, text = record.PairingIgnored, "🙈 %s is ignored."
	}
	p, ok, err := c.g.DecidePairing(ctx, code, to)
	switch {
	case errors.Is(err, record.ErrNotFound):
		text, p.Name = "This request is unknown%s.", ""
	case err != nil:
		c.failed(err, "decide a pairing")
		return
	case !ok:
		text = "The request of %s was decided already (" + string(p.State) + ")."
	}
	c.ack(ev, "")
	d := c.reply(it, ev.Origin, fmt.Sprintf(text, inert(p.Name)))
	c.end(ctx, "decided a pairing", record.NoEffect{}, []record.Delivery{d}, it)
}

// DecidePairing lets a stranger in or ignores them; messages of theirs that were
// kept are then answered. ok is false if the request was decided already.
func (g *Gateway) DecidePairing(ctx context.Context, code string, to record.PairingState) (p record.Pairing, ok bool, err error) {
	p, ok, err = g.store.DecidePairing(ctx, code, to)
	if err != nil || !ok {
		return p, ok, err
	}
	m := record.Member{ID: p.Person, Name: p.Name, Role: record.RoleUser}
	if to == record.PairingIgnored {
		m.Role = record.RoleIgnored
	}
	if err := g.store.SetMember(ctx, m); err != nil {
		return p, ok, err
	}
	if to != record.PairingAllowed {
		return p, ok, nil
	}
	fences, err := g.store.ReceiveHeld(ctx, g.replica(), p.Person)
	for _, f := range fences {
		g.wake(f, nil)
	}
	return p, ok, err
}
