package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// Agent runs turns and compressions; *agentcore.Agent is one.
type Agent interface {
	RunConversation(ctx context.Context, r agentcore.Request) (*agentcore.Result, error)
	Resume(ctx context.Context, r agentcore.Request) (*agentcore.Result, error)
	NeedsCompression(ctx context.Context, r agentcore.CompactRequest) (bool, error)
	Compact(ctx context.Context, r agentcore.CompactRequest) (engine.Result, error)
	// Skills are the owner's, sorted by name.
	Skills() []agentcore.Skill
	// StopProcesses ends what tools left running for a conversation.
	StopProcesses(c record.ConversationID) int
}

// Metrics counts; *httpserver or cmd implements it. Methods must not block.
type Metrics interface {
	Received(a chat.AccountID, r record.Receipt)
	TurnEnded(s record.TurnState, u llm.Usage)
	Delivery(k record.DeliveryKind, s record.DeliveryState)
	Conversations(active int)
}

// Deps is what a gateway works with.
type Deps struct {
	Store    Store
	Agent    Agent
	Adapters []chat.Adapter
	Metrics  Metrics
	Log      *zap.Logger
	// Model is the one that conversations use unless they override it, and
	// CheckModel says why one cannot be used.
	Model      llm.ModelID
	CheckModel func(llm.ModelID) error
	Facts      func(llm.ModelID) llm.Facts
	// CompressAt is the fraction of the window from which a conversation is
	// compressed between turns.
	CompressAt float64
	// Workspace takes in what people attach; nil: files are only named. Transcriber
	// writes voice notes down; nil: people are asked to type.
	Workspace   Workspace
	Transcriber Transcriber
	// Outbox is the folder in which files wait until they are sent; "": none can be.
	Outbox string
	// Titler names sessions after their first answer; nil: people do.
	Titler Titler
	// MaxTurns bounds the model calls of a turn.
	MaxTurns int
	Now      func() time.Time
}

// Gateway owns the conversations of this process.
type Gateway struct {
	cfg      Config
	deps     Deps
	store    Store
	agent    Agent
	metrics  Metrics
	log      *zap.Logger
	now      func() time.Time
	access   access
	accounts map[chat.AccountID]*account
	sorted   []*account
	menu     []command // what /help lists
	self     atomic.Pointer[record.ReplicaID]

	draining chan struct{} // closed: no new turns
	hurry    chan struct{} // closed: suspend at once

	mu            sync.Mutex
	conversations map[record.ConversationID]*conversation
	running       sync.WaitGroup
	work          context.Context // the conversations' context, set by Run
}

// New makes a gateway. It does no I/O.
func New(cfg Config, deps Deps) (*Gateway, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	g := &Gateway{
		cfg: cfg, deps: deps, store: deps.Store, agent: deps.Agent, metrics: deps.Metrics, log: deps.Log, now: deps.Now,
		access: access{cfg.Access}, accounts: map[chat.AccountID]*account{}, conversations: map[record.ConversationID]*conversation{}, menu: visible(),
		draining: make(chan struct{}), hurry: make(chan struct{}),
	}
	for _, a := range deps.Adapters {
		if g.accounts[a.Account()] != nil {
			return nil, fmt.Errorf("gateway: two adapters have the account %s; give them different names", a.Account())
		}
		acc := newAccount(a)
		g.accounts[a.Account()] = acc
		g.sorted = append(g.sorted, acc)
	}
	if g.now == nil {
		g.now = time.Now
	}
	return g, nil
}

// Run works until ctx ends: intake stops, turns get the grace period and are then
// suspended, deliveries settle, claims are released. Ending hurry as well
// suspends at once. It returns an error only if it could not begin.
func (g *Gateway) Run(ctx, hurry context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	g.work = work
	if err := g.register(ctx, work); err != nil {
		return err
	}
	var background sync.WaitGroup
	background.Go(func() { defer g.door("listen"); g.listen(work) })
	background.Go(func() { defer g.door("sweep"); g.sweep(ctx) })
	background.Go(func() { defer g.door("schedules"); g.runSchedules(ctx) })
	var intake sync.WaitGroup
	for _, a := range g.sorted {
		intake.Go(func() { g.runAccount(ctx, a) })
	}
	<-ctx.Done()
	stopHurry := context.AfterFunc(hurry, func() { close(g.hurry) })
	defer stopHurry()
	intake.Wait()
	g.shutdown()
	cancel()
	background.Wait()
	return nil
}

// flushLimit is how long a conversation's deliveries may settle at shutdown.
const flushLimit = 10 * time.Second

// shutdown drains the conversations and gives everything up.
func (g *Gateway) shutdown() {
	close(g.draining)
	done := make(chan struct{})
	go func() { g.running.Wait(); close(done) }()
	limit := time.NewTimer(g.cfg.Shutdown.Grace + 2*flushLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		g.log.Warn("shutdown: conversations are left for the next start")
	}
	g.release()
}

// release gives up what this replica owns, so that another takes over at once.
func (g *Gateway) release() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.work), 5*time.Second)
	defer cancel()
	for _, a := range g.sorted {
		if a.adapter.Limits().SingleIntake {
			if err := g.store.ReleaseAccount(ctx, g.replica(), a.id); err != nil {
				g.log.Warn("release an account", zap.Error(err))
			}
		}
	}
}

// register makes this process a replica, and again if it was given up for dead.
func (g *Gateway) register(ctx, work context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id, err := g.store.Register(work, host, func(cause error) { g.lostReplica(work, cause) })
	if err != nil {
		return fmt.Errorf("gateway: register this replica: %w", err)
	}
	g.self.Store(&id)
	g.log.Info("replica", zap.String("replica", string(id)))
	return ctx.Err()
}

func (g *Gateway) replica() record.ReplicaID { return *g.self.Load() }

// lostReplica is called when the heartbeat could not be confirmed in time: others
// may take over, so everything stops here. Then this process registers anew.
func (g *Gateway) lostReplica(work context.Context, cause error) {
	g.log.Error("this replica was out of touch with the database for too long; it begins anew", zap.Error(cause))
	g.mu.Lock()
	for _, c := range g.conversations {
		c.box.put(wakeLost{})
	}
	g.mu.Unlock()
	for work.Err() == nil {
		if err := g.register(work, work); err == nil {
			return
		}
		pause(work, 2*time.Second)
	}
}

// wake hands a conversation its event, starting its goroutine if it has none.
func (g *Gateway) wake(f record.Fence, hint *record.InboxItem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.conversations[f.Conversation]
	if c == nil {
		if c = g.launch(f); c == nil {
			return
		}
	}
	c.box.put(wake{fence: f, hint: hint})
}

// launch starts a conversation's goroutine; the registry is locked.
func (g *Gateway) launch(f record.Fence) *conversation {
	select {
	case <-g.draining:
		return nil // it is claimed again at the next start
	default:
	}
	c := &conversation{g: g, fence: f, box: newMailbox(), log: g.log.With(zap.String("conversation", string(f.Conversation)))}
	g.conversations[f.Conversation] = c
	g.metrics.Conversations(len(g.conversations))
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		defer g.forget(c)
		defer g.door("conversation")
		c.run(g.work)
	}()
	return c
}

// forget takes a conversation off the registry if it is still the one there.
func (g *Gateway) forget(c *conversation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conversations[c.fence.Conversation] == c {
		delete(g.conversations, c.fence.Conversation)
		g.metrics.Conversations(len(g.conversations))
	}
}

// retire releases an idle conversation's claim and takes it off the registry. The
// row lock that intake takes too decides: an event that comes first keeps it.
func (g *Gateway) retire(ctx context.Context, c *conversation) bool {
	released, err := g.store.Release(ctx, c.fence, false)
	if err != nil && !errors.Is(err, record.ErrFenced) {
		c.failed(err, "release")
		return false
	}
	if err == nil && !released {
		c.stale = true
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.box.empty() {
		return false // woken with a new claim
	}
	delete(g.conversations, c.fence.Conversation)
	g.metrics.Conversations(len(g.conversations))
	return true
}

// door recovers a panic of a goroutine that has no caller to tell.
func (g *Gateway) door(where string) {
	if r := recover(); r != nil {
		g.log.Error("panic", zap.String("where", where), zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
	}
}

// panicked turns a panic into an error with a reference that is in the log.
func (g *Gateway) panicked(where string, r any) error {
	ref := g.reference()
	g.log.Error("panic", zap.String("where", where), zap.Any("panic", r), zap.String("reference", ref), zap.ByteString("stack", debug.Stack()))
	return fmt.Errorf("gateway: internal error in the %s (reference %s)", where, ref)
}

// reference makes the id of an internal error.
func (g *Gateway) reference() string { return record.NewID()[24:] }
