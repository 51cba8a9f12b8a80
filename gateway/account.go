package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"parley/gateway/chat"
)

// account is one adapter with what the gateway knows about it.
type account struct {
	id      chat.AccountID
	adapter chat.Adapter
	limiter *limiter

	mu     sync.Mutex
	state  accountState
	reason string
	told   map[chat.Person]bool
}

// accountState is an account's state, for /readyz.
type accountState string

const (
	accountStarting accountState = "starting"
	accountReady    accountState = "ready"
	accountStandby  accountState = "standby" // another replica takes in its events
	accountHealing  accountState = "reconnecting"
	accountFailed   accountState = "failed" // for good
)

func newAccount(a chat.Adapter) *account {
	return &account{id: a.Account(), adapter: a, limiter: newLimiter(a.Limits()), state: accountStarting, told: map[chat.Person]bool{}}
}

func (a *account) set(s accountState, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state, a.reason = s, reason
}

func (a *account) connection(s chat.ConnectionState, reason string) {
	switch s {
	case chat.Connected:
		a.set(accountReady, "")
	case chat.Connecting, chat.Reconnecting:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.state != accountStarting {
			a.state = accountHealing
		}
		a.reason = reason
	}
}

func (a *account) status() (accountState, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.reason
}

// firstTime says whether a person has not been told something yet; bounded.
func (a *account) firstTime(p chat.Person) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told[p] || len(a.told) >= 1000 {
		return false
	}
	a.told[p] = true
	return true
}

// Problem is one reason why parley is not ready, or only in part.
type Problem struct {
	Component string `json:"component"`
	Reason    string `json:"reason"`
	// Degraded problems leave the rest ready.
	Degraded bool `json:"degraded,omitempty"`
}

// Problems lists what keeps the gateway from being ready: each adapter must have
// connected, stand by, or have failed for good; one failed adapter is degraded,
// all failed is not ready.
func (g *Gateway) Problems() []Problem {
	var ps []Problem
	failed := 0
	for _, a := range g.sorted {
		switch s, reason := a.status(); s {
		case accountStarting:
			if reason == "" {
				reason = "has not connected yet"
			}
			ps = append(ps, Problem{Component: string(a.id), Reason: reason})
		case accountHealing:
			ps = append(ps, Problem{Component: string(a.id), Reason: reason, Degraded: true})
		case accountFailed:
			failed++
			ps = append(ps, Problem{Component: string(a.id), Reason: reason, Degraded: true})
		case accountReady, accountStandby:
		}
	}
	if failed > 0 && failed == len(g.sorted) {
		ps = append(ps, Problem{Component: "gateway", Reason: "every adapter has failed"})
	}
	return ps
}

// runAccount runs an adapter until ctx ends, or for good until its credential is
// refused: then it ends alone, and the others go on. Where only one process may
// take in events, it waits for its turn.
func (g *Gateway) runAccount(ctx context.Context, a *account) {
	log := g.log.With(zap.String("account", string(a.id)))
	for ctx.Err() == nil {
		if !g.waitIntake(ctx, a) {
			return
		}
		err := g.adapterRun(ctx, a)
		var cred *chat.CredentialError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &cred):
			a.set(accountFailed, cred.Reason)
			log.Error("this adapter has ended; the others go on", zap.String("reason", cred.Reason), zap.String("fix", cred.Fix))
			<-ctx.Done()
		default:
			log.Error("the adapter ended; it is started again", zap.Error(err))
			a.connection(chat.Reconnecting, "the adapter ended unexpectedly")
			pause(ctx, 5*time.Second)
		}
	}
}

// adapterRun is the door of an adapter's loop.
func (g *Gateway) adapterRun(ctx context.Context, a *account) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = g.panicked("adapter", r)
		}
	}()
	var menu sync.WaitGroup
	defer menu.Wait()
	if p, ok := a.adapter.(chat.CommandPublisher); ok {
		mctx, cancel := context.WithCancel(ctx)
		defer cancel()
		menu.Go(func() {
			defer g.door("publish commands")
			g.publish(mctx, a.id, p)
		})
	}
	return a.adapter.Run(ctx, g.sink(a))
}

// publish gives the platform the command menu, and tries again until it has taken
// it or refused it for good.
func (g *Gateway) publish(ctx context.Context, id chat.AccountID, p chat.CommandPublisher) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		cctx, cancel := context.WithTimeout(ctx, callLimit)
		err := p.PublishCommands(cctx, CommandInfos())
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		level := zapcore.DebugLevel // the account's link tells of an outage already
		var rejected *chat.RejectedError
		if errors.As(err, &rejected) {
			level = zapcore.WarnLevel
		}
		g.log.Log(level, "the command menu was not published", zap.String("account", string(id)), zap.Error(err))
		if rejected != nil {
			return
		}
		pause(ctx, wait)
	}
}

// waitIntake waits until this replica may take in the account's events.
func (g *Gateway) waitIntake(ctx context.Context, a *account) bool {
	if !a.adapter.Limits().SingleIntake {
		return ctx.Err() == nil
	}
	for ctx.Err() == nil {
		ok, err := g.store.ClaimAccount(ctx, g.replica(), a.id)
		if ok {
			return true
		}
		if err != nil && ctx.Err() == nil {
			g.log.Warn("claim an account's intake", zap.String("account", string(a.id)), zap.Error(err))
		}
		if err == nil {
			a.set(accountStandby, "another replica takes in its events")
		}
		pause(ctx, time.Second)
	}
	return false
}

// pause waits, or less if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
