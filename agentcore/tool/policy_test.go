package tool_test

import (
	"context"
	"strings"
	"testing"

	"parley/agentcore/tool"
	"parley/store/record"
)

func TestPolicy(t *testing.T) {
	const user, schedule, untrusted = record.TrustUser, record.TrustSchedule, record.TrustUntrusted
	needs := func(c tool.Capability) tool.Judgement { return tool.Judgement{Needs: c, Pattern: "p"} }
	graded := func(c tool.Capability, d tool.Danger) tool.Judgement {
		return tool.Judgement{Needs: c, Danger: d, Reason: "it says so", Pattern: "p"}
	}
	for name, tc := range map[string]struct {
		mode  tool.Verdict
		call  tool.Judgement
		trust record.Trust
		role  record.Role
		want  tool.Verdict
	}{
		"reading":                    {"", needs(0), user, record.RoleUser, tool.Allow},
		"writing":                    {"", needs(tool.Write), user, record.RoleUser, tool.Allow},
		"commands ask":               {"", needs(tool.Exec), user, record.RoleOwner, tool.Ask},
		"safe ones do not":           {"", graded(tool.Exec, tool.Safe), user, record.RoleUser, tool.Allow},
		"dangerous ones ask":         {"", graded(tool.Write, tool.Dangerous), user, record.RoleOwner, tool.Ask},
		"opaque ones ask always":     {tool.Allow, graded(tool.Exec, tool.Opaque), user, record.RoleOwner, tool.Ask},
		"unless configured":          {tool.Allow, needs(tool.Exec), user, record.RoleOwner, tool.Allow},
		"forbidden":                  {"", graded(tool.Exec, tool.Forbidden), user, record.RoleOwner, tool.Deny},
		"forbidden in spite of all":  {tool.Allow, graded(tool.Exec, tool.Forbidden), user, record.RoleOwner, tool.Deny},
		"untrusted reading":          {"", needs(0), untrusted, record.RoleOwner, tool.Allow},
		"untrusted writing":          {"", needs(tool.Write), untrusted, record.RoleOwner, tool.Ask},
		"untrusted network":          {"", needs(tool.Network), untrusted, record.RoleOwner, tool.Ask},
		"untrusted and safe":         {"", graded(tool.Exec, tool.Safe), untrusted, record.RoleOwner, tool.Ask},
		"allow is not for untrusted": {tool.Allow, needs(tool.Exec), untrusted, record.RoleOwner, tool.Ask},
		"untrusted and switched off": {tool.Deny, needs(tool.Write), untrusted, record.RoleOwner, tool.Deny},
		"schedule":                   {"", needs(tool.Exec), schedule, record.RoleUser, tool.Ask},
		"configuring":                {"", needs(tool.Configure), user, record.RoleUser, tool.Deny},
		"configuring with allow":     {tool.Allow, needs(tool.Configure), user, record.RoleUser, tool.Deny},
		"configuring as an admin":    {"", needs(tool.Configure), user, record.RoleAdmin, tool.Allow},
		"switched off":               {tool.Deny, needs(tool.Exec), user, record.RoleOwner, tool.Deny},
		"danger while switched off":  {tool.Deny, graded(tool.Write, tool.Dangerous), user, record.RoleOwner, tool.Deny},
		"ignored":                    {tool.Allow, needs(0), user, record.RoleIgnored, tool.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			got := tool.Policy{Mode: tc.mode}.Decide(tool.Subject{Judgement: tc.call, Trust: tc.trust, Role: tc.role})
			if got.Verdict != tc.want || (got.Verdict != tool.Allow) == (got.Reason == "") {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
			// A lasting consent is a person's for their own turns.
			if may := got.Verdict == tool.Ask && tc.trust != untrusted && tc.call.Danger != tool.Opaque; may != (got.Pattern != "") {
				t.Errorf("pattern %q", got.Pattern)
			}
		})
	}
}

// A tool cannot need more than it declares, and arguments that do not fit are not
// judged by a tool that could not read them.
func TestJudge(t *testing.T) {
	type in struct {
		Path string `json:"path"`
	}
	judge := func(_ tool.Call, i in) tool.Judgement {
		if strings.HasSuffix(i.Path, "/") {
			return tool.Judgement{Needs: tool.Write | tool.Exec, Danger: tool.Dangerous, Reason: "it deletes a folder", Pattern: "delete " + i.Path}
		}
		return tool.Judgement{}
	}
	run := func(context.Context, tool.Call, in) (tool.Result, error) { return tool.Result{}, nil }
	s := spec("files")
	s.Needs = tool.Write
	judged, err := tool.NewJudged(s, judge, run)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := tool.New(s, run)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]tool.Judgement{
		`{"path":"a/"}`: {Needs: tool.Write, Danger: tool.Dangerous, Reason: "it deletes a folder", Pattern: "delete a/"},
		`{"path":"a"}`:  {},
		`{"paht":"a"}`:  {Needs: tool.Write},
		``:              {Needs: tool.Write},
	} {
		if got := tool.Judge(judged, tool.Call{Arguments: []byte(args)}); got != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := tool.Judge(plain, tool.Call{Arguments: []byte(`{"path":"a"}`)}); got != (tool.Judgement{Needs: tool.Write, Pattern: `{"path":"a"}`}) {
		t.Errorf("%+v", got)
	}
}
