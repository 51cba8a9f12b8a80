package agentcore

import (
	"context"
	"strings"

	"parley/agentcore/prompt"
	"parley/agentcore/tool"
)

// Skill is an instruction that the owner has installed.
type Skill = prompt.Skill

// Skills are the owner's skills, sorted by name, for listings. A message that begins
// with "/skill NAME" brings that one in, as it stands in the history.
func (a *Agent) Skills() []Skill { return a.deps.Skills }

type skillInput struct {
	Name string `json:"name" jsonschema:"the name of a skill of the list in your instructions"`
}

// skillTool reads a skill that no word of the message has called for.
func (a *Agent) skillTool() (tool.Tool, error) {
	spec := tool.Spec{Parallel: true, ReadOnly: true}
	spec.Name = "skill"
	spec.Description = "Read a skill: the owner's instructions for a kind of task. The list of skills is in your instructions."
	return tool.New(spec, func(_ context.Context, _ tool.Call, in skillInput) (tool.Result, error) {
		var names []string
		for _, s := range a.deps.Skills {
			if strings.EqualFold(s.Name, in.Name) {
				return tool.Result{Text: s.Text()}, nil
			}
			names = append(names, s.Name)
		}
		return tool.Failure("There is no skill %q. There are: %s.", in.Name, strings.Join(names, ", ")), nil
	})
}
