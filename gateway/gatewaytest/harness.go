package gatewaytest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/spending"
	"parley/agentcore/tool"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/store"
	"parley/store/record"
	"parley/store/storetest"
)

// DefaultModel is the model of the tests; Window is its context window.
const (
	DefaultModel = llm.ModelID("test/model")
	Window       = 100_000
)

// Price is what the tests' model costs: a currency's unit for a thousand tokens.
var Price = llm.Price{Input: 1000, Output: 1000}

// Owner is a person whom the configuration makes an admin, User one whom it
// allows.
var (
	Owner = chat.User{ID: "test:1", Name: "Olga"}
	User  = chat.User{ID: "test:2", Name: "Udo"}
)

// Options change what New starts.
type Options struct {
	Config func(*gateway.Config)
	Limits chat.Limits
	Window int
	Engine engine.Config
	// Budgets limit what may be spent; a token costs Price.
	Budgets spending.Config
	Tools   []tool.Tool
	Policy  tool.Policy
	// Agent changes what the agent is made of.
	Agent func(*agentcore.Config, *agentcore.Deps)
	// Store is shared by several harnesses; nil: a fresh one.
	Store *store.DB
	// Wrap changes the gateway's view of the store, to make it fail.
	Wrap func(gateway.Store) gateway.Store
	// Platform is shared by a harness that is started anew; nil: a fresh one.
	Platform *Platform
	// Transcriber writes voice notes down, Titler names sessions.
	Transcriber gateway.Transcriber
	// Now is the gateway's clock; nil: the real one.
	Now    func() time.Time
	Titler gateway.Titler
	// Workspace is shared by a harness that is started anew; "": a fresh one.
	Workspace string
}

// Harness is a running gateway.
type Harness struct {
	T        testing.TB
	Store    *store.DB
	Platform *Platform
	Model    *Model
	Gateway  *gateway.Gateway
	Agent    *agentcore.Agent
	// Workspace is the folder in which each conversation has one.
	Workspace string
	// Outbox is where files wait to be sent.
	Outbox string

	stop, hurry context.CancelFunc
	done        chan error
	once        sync.Once
	said        int
}

// New starts a gateway; it is stopped when the test ends.
func New(t testing.TB, m *Model, o Options) *Harness {
	t.Helper()
	h := &Harness{T: t, Model: m, Store: o.Store, Platform: o.Platform, done: make(chan error, 1)}
	if h.Store == nil {
		h.Store = storetest.New(t)
	}
	if h.Platform == nil {
		h.Platform = NewPlatform(o.Limits)
	}
	log := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	cfg := gateway.DefaultConfig()
	cfg.Access.Admins, cfg.Access.Allow = []string{string(Owner.ID)}, []string{string(User.ID)}
	cfg.Shutdown.Grace = 5 * time.Second
	if o.Config != nil {
		o.Config(&cfg)
	}
	if h.Workspace = o.Workspace; h.Workspace == "" {
		h.Workspace = t.TempDir()
	}
	h.Outbox = filepath.Join(h.Workspace, ".outbox")
	space, err := tool.NewWorkspace(h.Workspace)
	if err != nil {
		t.Fatal(err)
	}
	h.Agent = newAgent(t, h, o, space, log)
	var view gateway.Store = h.Store
	if o.Wrap != nil {
		view = o.Wrap(view)
	}
	g, err := gateway.New(cfg, gateway.Deps{
		Store: view, Agent: h.Agent, Adapters: []chat.Adapter{h.Platform}, Metrics: noMetrics{}, Log: log, Model: DefaultModel,
		CheckModel: func(llm.ModelID) error { return nil }, Facts: facts(o.Window), MaxTurns: 20, CompressAt: 0.85, Now: o.Now,
		Workspace: space, Transcriber: o.Transcriber, Outbox: h.Outbox, Titler: o.Titler,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Gateway = g
	ctx, stop := context.WithCancel(context.Background())
	hurry, now := context.WithCancel(context.Background())
	h.stop, h.hurry = stop, now
	go func() { h.done <- g.Run(ctx, hurry) }()
	t.Cleanup(h.Stop)
	return h
}

func newAgent(t testing.TB, h *Harness, o Options, space tool.Workspace, log *zap.Logger) *agentcore.Agent {
	t.Helper()
	if o.Engine == (engine.Config{}) {
		o.Engine = engine.DefaultConfig()
	}
	book := spending.New(o.Budgets, spending.Deps{Ledger: h.Store, Price: func(llm.ModelID) llm.Price { return Price }, Log: log})
	eng, err := engine.New(o.Engine, engine.Deps{Summarise: h.Model, Model: DefaultModel, Book: book})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewSet(o.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := agentcore.DefaultConfig()
	deps := agentcore.Deps{
		Model: h.Model, DefaultModel: DefaultModel, Facts: facts(o.Window), Engine: eng, Tools: tools, Policy: o.Policy,
		Asker: agentcore.DenyAsker{}, Notes: h.Store, Searcher: h.Store, Todos: h.Store, Schedules: h.Store, Log: log, Now: time.Now,
		SendFiles: true,
		Sight:     agentcore.Sight{Workspace: space},
		Recall:    memory.NewRecaller(memory.Deps{Store: h.Store, Log: log}), Book: book,
	}
	if o.Agent != nil {
		o.Agent(&cfg, &deps)
	}
	a, err := agentcore.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func facts(window int) func(llm.ModelID) llm.Facts {
	if window == 0 {
		window = Window
	}
	return func(llm.ModelID) llm.Facts { return llm.Facts{ContextWindow: window, MaxOutput: 1000} }
}

// Stop ends the gateway as a signal would, and waits.
func (h *Harness) Stop() {
	h.once.Do(func() {
		h.stop()
		select {
		case err := <-h.done:
			if err != nil {
				h.T.Errorf("gateway: %v", err)
			}
		case <-time.After(waitLimit):
			h.hurry()
			h.T.Error("the gateway did not stop")
		}
	})
}

// Direct is the address of a person's direct chat.
func Direct(u chat.User) chat.Address {
	return chat.Address{Account: "test/main", Chat: chat.ChatID("dm-" + u.ID)}
}

// Say delivers a direct message of a person and returns its id.
func (h *Harness) Say(u chat.User, text string) chat.MessageID {
	h.T.Helper()
	return h.Deliver(chat.MessageReceived{Origin: h.origin(u, Direct(u), chat.Direct), Text: text, ForBot: true})
}

// SayIn delivers a message that mentions the bot in a group.
func (h *Harness) SayIn(group chat.ChatID, u chat.User, text string) chat.MessageID {
	h.T.Helper()
	a := chat.Address{Account: "test/main", Chat: group}
	return h.Deliver(chat.MessageReceived{Origin: h.origin(u, a, chat.Group), Text: text, ForBot: true})
}

// Press delivers the press of a button.
func (h *Harness) Press(u chat.User, p Post, data string) {
	h.T.Helper()
	o := h.origin(u, Direct(u), chat.Direct)
	if p.Chat != o.Address.Chat {
		o.Address.Chat, o.Kind = p.Chat, chat.Group
	}
	o.Key = chat.EventKey("press/" + string(o.Message))
	h.Deliver(chat.ButtonPressed{Origin: o, Data: data, Ack: string(o.Key)})
}

func (h *Harness) origin(u chat.User, a chat.Address, k chat.Kind) chat.Origin {
	h.said++
	id := fmt.Sprintf("%s-%d", record.NewID()[24:], h.said)
	return chat.Origin{Key: chat.EventKey("message/" + id), Address: a, Kind: k, From: u, At: time.Now(), Message: chat.MessageID(id)}
}

// Deliver hands over any event and fails the test if it is not taken.
func (h *Harness) Deliver(ev chat.Event) chat.MessageID {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := h.Platform.Deliver(ctx, ev); err != nil {
		h.T.Fatalf("deliver: %v", err)
	}
	return ev.Meta().Message
}

// Final waits until the chat's newest post is a finished message with the text.
func (h *Harness) Final(u chat.User, text string) []Post {
	h.T.Helper()
	return h.Platform.Await(h.T, Direct(u).Chat, fmt.Sprintf("final text %q", text), func(ps []Post) bool {
		return len(ps) > 0 && !ps[len(ps)-1].Out.Live && ps[len(ps)-1].Out.Text == text
	})
}

// noMetrics counts nothing.
type noMetrics struct{}

func (noMetrics) Received(chat.AccountID, record.Receipt)            {}
func (noMetrics) TurnEnded(record.TurnState, llm.Usage)              {}
func (noMetrics) Delivery(record.DeliveryKind, record.DeliveryState) {}
func (noMetrics) Conversations(int)                                  {}
