package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/agentcore/history"
	"parley/agentcore/llm"
	"parley/store/record"
)

// checkPrefix is PRV-006 over a conversation: each request begins with all bytes of
// the last one that may be in a cache. These end with the last cache marker, or for
// APIs without markers with the last message; a notice for one call is never among
// them. Where the last request had its last marker this one has one too, so that what
// was written there is found.
func checkPrefix(t *testing.T, b *bench) {
	req := b.request("begin §0")
	var before []byte
	for i := range 8 {
		req.Ephemeral = fmt.Sprintf("[notice %d]", i)
		a := Answer{Reasoning: "hm", Text: fmt.Sprintf("answer %d", i)}
		if i%3 > 0 {
			a.Calls = []Call{{Name: "look", Arguments: `{"at": "<x>"}`}, {Name: "wait"}}
		}
		b.backend.Enqueue(a)
		r := b.must(t, req)
		got := b.backend.Last(t)
		body, end := got.Unmarked(), fmt.Sprintf("§%d", i)
		if !bytes.HasPrefix(body, before) {
			t.Fatalf("request %d does not begin with what the last one had:\n%s\n%s", i, before, body)
		}
		if len(got.Marks) > 0 && i > 0 && !slices.Contains(got.Marks, len(before)) {
			t.Fatalf("request %d has no marker where the last one had its last", i)
		}
		before = body[:bytes.Index(body, []byte(end))+len(end)]
		if n := len(got.Marks); n > 0 {
			before = body[:got.Marks[n-1]]
		}
		if len(got.Marks) > maxMarkers || !bytes.Contains(before, []byte(end)) || bytes.Contains(before, []byte("[notice")) {
			t.Fatalf("request %d has %d markers, the last one behind: %s", i, len(got.Marks), before)
		}
		req.Messages = append(req.Messages, r.Message)
		end = fmt.Sprintf("§%d", i+1)
		switch calls := r.Message.ToolCalls; {
		case len(calls) > 0:
			req.Messages = append(req.Messages, result(calls[0].ID, "seen"), result(calls[1].ID, end))
		default:
			req.Messages = append(req.Messages, llm.Text(llm.User, "and then "+end))
		}
	}
}

// checkReplay gives an answer with thinking and calls back, to its own model and to
// another one: neither refuses it (PRV-026).
func checkReplay(t *testing.T, b *bench) {
	req := b.request("think and look")
	req.Reasoning, req.MaxOutput = "high", 20_000
	b.backend.Enqueue(Answer{Reasoning: "let me <see>", Text: "I look", Calls: []Call{{Name: "look"}, {Name: "wait"}}})
	r := b.must(t, req)
	calls := r.Message.ToolCalls
	req.Messages = append(req.Messages, r.Message, result(calls[0].ID, "one"), result(calls[1].ID, "two"))
	for _, model := range []llm.ModelID{b.Model, b.Model + "-mini", b.Model} {
		req.Model = model
		b.backend.Enqueue(Answer{Reasoning: "hm", Text: "so"})
		b.must(t, req)
		got := b.backend.Last(t)
		if len(got.Results()) != 2 && got.LastUser() == "" {
			t.Errorf("%s: the request is %+v", model, got.Messages)
		}
	}
}

// checkImages: an image that a server refuses would spoil each later request.
func checkImages(t *testing.T, b *bench) {
	req := b.request("see")
	image := func(mime string, n int) llm.Part {
		return llm.Part{Image: &llm.Image{MIME: mime, Data: bytes.Repeat([]byte{1}, n)}}
	}
	req.Messages[0].Parts = append(req.Messages[0].Parts,
		image("image/jpg", 3), image("IMAGE/PNG; q=1", 3), image("image/svg+xml", 3), image("", 3), image("image/png", 0), image("image/webp", 30<<20))
	b.backend.Enqueue(Answer{Text: "ok"})
	b.must(t, req)
	if got := b.backend.Last(t); got.Last().Images != 2 || strings.Count(got.Last().Text, "left out") != 4 {
		t.Errorf("%d images, text %q", got.Last().Images, got.Last().Text)
	}
	for range 130 { // more than Anthropic takes in one request
		req.Messages = append(req.Messages, llm.Text(llm.Assistant, "seen"), llm.Message{Role: llm.User, Parts: []llm.Part{image("image/png", 3)}})
	}
	b.backend.Enqueue(Answer{Text: "ok"})
	b.must(t, req)
	if got := b.backend.Last(t); got.Last().Images != 1 {
		t.Errorf("the newest image was left out: %+v", got.Last())
	}
}

// checkResults: what is said after results, and several results, stay in their order
// and with their calls (PRV-031).
func checkResults(t *testing.T, b *bench) {
	req := b.request("look")
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "x", Name: "look", Arguments: "{}"}, {ID: "x", Name: "look", Arguments: "{}"}}},
		result("x", "first"), llm.Message{Role: llm.ToolRole, ToolCallID: "x", Parts: []llm.Part{
			{Text: "second"}, {Image: &llm.Image{MIME: "image/png", Data: []byte("p")}},
		}},
		llm.Text(llm.User, "stop that"))
	b.backend.Enqueue(Answer{Text: "ok"})
	b.must(t, req)
	got := b.backend.Last(t)
	texts, images := []string{}, 0
	for _, m := range got.Messages[len(got.Messages)-3:] {
		texts = append(texts, m.Role+" "+m.Text)
		images += m.Images
	}
	if strings.Join(texts, ", ") != "tool first, tool second, user stop that" || images != 1 {
		t.Errorf("%q with %d images", texts, images)
	}
}

// damaged is how many damaged histories each mode is asked with.
const damaged = 10_000

// checkDamaged makes requests of whatever rows a store may hold: none is refused, and
// nothing that a person said is missing (PRV-015, PRV-018, PRV-020, PRV-021, PRV-029,
// PRV-032, PRV-040).
func checkDamaged(t *testing.T, b *bench) {
	for i := range damaged {
		rows, said := damagedRows(rand.New(rand.NewPCG(1, uint64(i))), b.Model)
		req := b.request("")
		req.Messages = history.Build(rows, history.Options{})
		b.backend.Enqueue(Answer{Text: "ok"})
		if _, err := b.ask(t, req); err != nil {
			t.Fatalf("history %d is refused: %v", i, err)
		}
		got := b.backend.Last(t)
		for _, text := range said {
			if !bytes.Contains(got.Body, []byte(text)) {
				t.Fatalf("history %d: %q is missing in %s", i, text, got.Body)
			}
		}
	}
}

// damagedRows makes rows in any order, and lists what people said in them.
func damagedRows(r *rand.Rand, model llm.ModelID) (rows []record.Message, said []string) {
	ids := []string{"", "a", "b", "call_1", "terminal:0", strings.Repeat("x", 94), strings.Repeat("x", 93) + "y"}
	names := []string{"look", "wait", "", "no such tool", strings.Repeat("n", 70)}
	args := []string{"{}", `{"at":"x"}`, "", "[1]", "null", `{"at":"C:\p`, `{"at":"\ud83d"}`, " {\"n\": 1.0e2} ", `"{}"`}
	texts := []string{"fine", "", " \n", "\x00", "half \xed\xa0\xbd", "<b>&\u2028"}
	raws := []string{"", `{}`, `[]`, `[{"text":4}]`, `[{"item":{"type":"thinking"},"text":99}]`, `nonsense`}
	for i := range r.IntN(14) {
		m := record.Message{Seq: int64(i)}
		switch r.IntN(4) {
		case 0:
			text := fmt.Sprintf("said %d", i)
			said = append(said, text)
			m.Role, m.Content = llm.User, text+pick(r, texts)
		case 1, 2:
			m.Role, m.Content = llm.Assistant, pick(r, texts)
			for range r.IntN(4) {
				m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: pick(r, ids), Name: pick(r, names), Arguments: pick(r, args)})
			}
			if raw := pick(r, raws); raw != "" {
				m.Reasoning = &llm.Reasoning{Text: "hm", Raw: json.RawMessage(raw), Issuer: pick(r, []string{string(model), "other/model"})}
			}
		default:
			m.Role, m.Content, m.ToolCallID = llm.ToolRole, pick(r, texts), pick(r, ids)
		}
		rows = append(rows, m)
	}
	if len(said) == 0 { // a turn begins with what somebody said
		rows, said = append(rows, record.Message{Role: llm.User, Content: "said last"}), []string{"said last"}
	}
	return rows, said
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
