package tool

import "context"

// Danger is how a call is to be treated beyond what its capabilities say.
type Danger int

// The grades of danger.
const (
	// Ordinary calls are decided by what they need: those with Exec ask.
	Ordinary Danger = iota
	// Safe calls are run without asking although they need Exec: they only read, and
	// only what the conversation may see.
	Safe
	// Dangerous calls ask although their capabilities alone would not.
	Dangerous
	// Opaque calls do what is only known while they run. They ask each time, whatever
	// is configured, and no consent lasts.
	Opaque
	// Forbidden calls are never run: no consent, no grant and no configuration
	// changes that.
	Forbidden
)

// Judgement is what a tool says of one call before it runs. The zero value is a
// call that needs nothing.
type Judgement struct {
	// Needs is what this call touches, at most what the Spec declares.
	Needs  Capability
	Danger Danger
	// Reason says in a few words of a sentence why it is dangerous, forbidden or has
	// to be asked: "it deletes files".
	Reason string
	// Pattern is what a consent for longer than this call covers, as a person reads
	// it; two calls with one pattern must do the same thing to the same target. Empty:
	// consent is for this call only.
	Pattern string
}

// Judged is a tool whose calls are not all alike. Judge is asked before consent is,
// again after a restart, and must be quick and without effect. Arguments that make
// no sense get a judgement too: they will be refused when the call runs.
type Judged interface {
	Tool
	Judge(c Call) Judgement
}

// Judge returns a tool's judgement of a call; for a tool that has none, that it
// needs all that is declared, with the arguments as they are for a pattern.
func Judge(t Tool, c Call) Judgement {
	needs := t.Spec().Needs
	judged, ok := t.(Judged)
	if !ok {
		return Judgement{Needs: needs, Pattern: string(c.Arguments)}
	}
	j := judged.Judge(c)
	j.Needs &= needs
	return j
}

// NewJudged is New for a tool whose calls differ: judge says what a call with these
// arguments does. Arguments that do not fit are judged by the Spec alone.
func NewJudged[In any](spec Spec, judge func(Call, In) Judgement, run func(context.Context, Call, In) (Result, error)) (Tool, error) {
	t, err := New(spec, run)
	if err != nil {
		return nil, err
	}
	return &judgedTool[In]{typed: t.(*typed[In]), judge: judge}, nil
}

type judgedTool[In any] struct {
	*typed[In]
	judge func(Call, In) Judgement
}

func (t *judgedTool[In]) Judge(c Call) Judgement {
	var in In
	if t.decode(c.Arguments, &in) != "" {
		return Judgement{Needs: t.spec.Needs}
	}
	return t.judge(c, in)
}
