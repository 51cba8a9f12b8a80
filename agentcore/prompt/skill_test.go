package prompt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/prompt"
)

func writeSkill(t *testing.T, dir, folder, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, "SKILL.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadSkills(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	if skills, errs := prompt.ReadSkills(dir); skills != nil || errs != nil {
		t.Errorf("no folder: %v, %v", skills, errs)
	}
	writeSkill(t, dir, "a", "---\nname: weather\ndescription: |\n  Tells the weather.\ntriggers: [forecast, \"will it rain\"]\nlicense: MIT\n---\n# How\nAsk the service.\n\n---\nThat is all.\n")
	writeSkill(t, dir, "b", "\uFEFF---\r\nname: bake\r\ntriggers: cake, , Bread \r\n---\r\nHeat the oven.\u202E")
	writeSkill(t, dir, "c", "---\nname: WEATHER\n---\nanother one")
	writeSkill(t, dir, "d", "no front matter")
	writeSkill(t, dir, "e", "---\nname: \"two words\"\n---\nx")
	writeSkill(t, dir, "f", "---\nname: empty\n---\n \n")
	writeSkill(t, dir, "g", "---\nname: [\n---\nx")
	outside := t.TempDir()
	writeSkill(t, outside, "h", "---\nname: outside\n---\nx")
	for _, err := range []error{
		os.Symlink(filepath.Join(outside, "h"), filepath.Join(dir, "h")), os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600), os.Mkdir(filepath.Join(dir, "notes"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	skills, errs := prompt.ReadSkills(dir)
	want := []prompt.Skill{
		{Name: "bake", Triggers: []string{"cake", "Bread"}, Body: "Heat the oven.", Folder: filepath.Join(dir, "b")},
		{Name: "weather", Description: "Tells the weather.", Triggers: []string{"forecast", "will it rain"}, Body: "# How\nAsk the service.\n\n---\nThat is all.", Folder: filepath.Join(dir, "a")},
	}
	if d := cmp.Diff(want, skills); d != "" {
		t.Error(d)
	}
	if len(errs) != 6 {
		t.Errorf("%d errors: %v", len(errs), errs)
	}
}

func TestMatching(t *testing.T) {
	skills := []prompt.Skill{
		{Name: "web", Triggers: []string{"browse", "画图"}}, {Name: "mail", Triggers: []string{"inbox", "send a letter"}}, {Name: "pdf-report"}, {Name: "x1", Triggers: []string{"many"}},
		{Name: "x2", Triggers: []string{"many"}}, {Name: "x3", Triggers: []string{"many"}}, {Name: "x4", Triggers: []string{"many", "words"}},
	}
	for message, want := range map[string]string{
		"use the web-browse tool": "web", "BROWSE!": "web", "(browse)": "web", "browse": "web",
		"browseable": "", "prebrowse": "", "browse_it": "", "browse2": "", "brówse": "", "überbrowse": "", "": "", "  ": "",
		"browseable, but do browse": "web", "请帮我画图吧": "web", "I want to SEND A LETTER now": "mail", "send a letters": "",
		"make a pdf-report of it": "pdf-report", "pdf-reports": "", "browse my inbox": "web mail", "many words": "x4 x1 x2",
		"/skill mail browse the web": "mail", "!skill PDF-Report": "pdf-report", "/skill nothing web": "web", "/skills mail": "mail", "say /skill web": "web",
	} {
		var got []string
		for _, s := range prompt.Matching(skills, message) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q matches %q, want %q", message, got, want)
		}
	}
}

func TestSkillText(t *testing.T) {
	s := prompt.Skill{Name: "bake", Body: "Heat the oven.", Folder: "/srv/skills/bake"}
	want := "[Skill \"bake\": instructions of the owner for this. Its files are in \"/srv/skills/bake\".]\nHeat the oven.\n[End of skill \"bake\".]"
	if got := s.Text(); got != want {
		t.Error(got)
	}
	var many []prompt.Skill
	for i := range 3 {
		many = append(many, prompt.Skill{Name: fmt.Sprint("s", 2-i), Description: "d"})
	}
	if got := prompt.Build(prompt.Parts{Skills: many}); strings.Index(got, `- "s0": "d"`) > strings.Index(got, `- "s2": "d"`) {
		t.Error(got)
	}
}
