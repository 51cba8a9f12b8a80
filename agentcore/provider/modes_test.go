package provider_test

import (
	"bytes"
	"fmt"
	"testing"

	"parley/agentcore/llm"
	"parley/agentcore/provider/anthropic"
	"parley/agentcore/provider/chatcompletions"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/responses"
	"parley/agentcore/provider/wire"
)

// mode is an API mode and its model at the fake server.
type mode struct {
	model    llm.ModelID
	provider llm.Provider
	// keeps is what of its own thinking the model gets back; empty: nothing.
	keeps string
}

func modes(t *testing.T, srv *providertest.Server) []mode {
	t.Helper()
	var out []mode
	add := func(m mode, err error) {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.provider.(interface{ Close() }).Close)
		out = append(out, m)
	}
	c, err := chatcompletions.New(wire.Config{Name: "chat", BaseURL: srv.BaseURL()}, wire.Deps{})
	add(mode{"chat/m-chat", c, ""}, err)
	r, err := responses.New(wire.Config{Name: "resp", BaseURL: srv.BaseURL()}, wire.Deps{})
	add(mode{"resp/m-resp", r, `"encrypted_content"`}, err)
	a, err := anthropic.New(wire.Config{Name: "anth", BaseURL: srv.BaseURL()}, wire.Deps{})
	add(mode{"anth/m-anth", a, `"signature"`}, err)
	return out
}

// TestHistoriesContinueInEveryMode begins a conversation in one mode, goes on in the
// middle of its tool calls in a second, in a third, and in the first again: no server
// refuses what the others left behind, each model gets its own thinking back and never
// that of another, every call finds its result, and no image is lost (PRV-005, PRV-007,
// PRV-026, PRV-031).
func TestHistoriesContinueInEveryMode(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			srv := providertest.NewServer(t, providertest.Options{})
			all := modes(t, srv)
			req := &llm.Request{
				System: "be brief", Tools: []llm.ToolSpec{{Name: "look"}}, Reasoning: "high", MaxOutput: 20_000, CacheKey: "s",
				Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{{Text: "what is this?"}, picture}}},
			}
			for turn, i := range append(order, order...) {
				say(t, srv, all[i], req, turn)
			}
			if r := srv.Refusals(); len(r) > 0 {
				t.Errorf("refused: %q", r)
			}
			images := 0
			for _, m := range srv.Last(t).Messages {
				images += m.Images
			}
			if images != 1+5 { // the first and one of each result but the last's
				t.Errorf("%d images arrived", images)
			}
		})
	}
}

var picture = llm.Part{Image: &llm.Image{MIME: "image/png", Data: []byte("p")}}

// say asks one model and appends its answer, and the results of its calls, whose ids
// are the same in each answer.
func say(t *testing.T, srv *providertest.Server, m mode, req *llm.Request, turn int) {
	t.Helper()
	thought := fmt.Sprintf("thought %d", turn)
	srv.Enqueue(providertest.Answer{Reasoning: thought, Text: fmt.Sprintf("text %d", turn), Calls: []providertest.Call{
		{ID: "call|1", Name: "look", Arguments: `{"at": 1}`}, {ID: "call|1", Name: "look"},
	}})
	req.Model = m.model
	r, err := llm.Collect(t.Context(), m.provider.Stream(t.Context(), req))
	if err != nil {
		t.Fatalf("turn %d: %v", turn, err)
	}
	body := srv.Last(t).Body
	mine := turn >= 3 // the model has spoken before
	if got := m.keeps != "" && bytes.Contains(body, []byte(m.keeps)); got != (mine && m.keeps != "") {
		t.Errorf("turn %d to %s: its own thinking is there: %v", turn, m.model, got)
	}
	if n := bytes.Count(body, []byte(`"encrypted_content"`)) + bytes.Count(body, []byte(`"signature"`)); n > 1 {
		t.Errorf("turn %d to %s: the thinking of %d answers", turn, m.model, n)
	}
	calls := r.Message.ToolCalls
	if r.Message.Reasoning == nil || r.Message.Reasoning.Text != thought || len(calls) != 2 || calls[0].ID == calls[1].ID {
		t.Fatalf("turn %d: %+v", turn, r.Message)
	}
	first := llm.Message{Role: llm.ToolRole, ToolCallID: calls[0].ID, Parts: []llm.Part{{Text: fmt.Sprintf("seen %d", turn)}, picture}}
	second := llm.Text(llm.ToolRole, "")
	second.ToolCallID = calls[1].ID
	req.Messages = append(req.Messages, r.Message, first, second)
}
