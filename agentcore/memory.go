package agentcore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/agentcore/memory"
	"parley/agentcore/tool"
	"parley/store/record"
)

// maxFactValue is in characters.
const maxFactValue = 500

// entryMark parts the entries of a document.
const entryMark = "\n§\n"

const memoryName = "memory"

type memoryInput struct {
	Action   string `json:"action" jsonschema:"add, replace and remove work on entries of a document; set_fact and forget_fact on single facts" enum:"add,replace,remove,set_fact,forget_fact"`
	Target   string `json:"target,omitempty" jsonschema:"memory: notes about work and surroundings; user: who the person is and what they prefer. Default memory" enum:"memory,user"`
	Content  string `json:"content,omitempty" jsonschema:"the new text of add and replace"`
	OldText  string `json:"old_text,omitempty" jsonschema:"replace and remove: a part of the entry that only this entry contains"`
	Category string `json:"category,omitempty" jsonschema:"facts: a general word such as contact, preference, project"`
	Key      string `json:"key,omitempty" jsonschema:"facts: what it is about, for example birthday"`
	Value    string `json:"value,omitempty" jsonschema:"facts: the value, at most 500 characters"`
}

// memoryTool writes what is to be known in later sessions. Documents and facts about
// a person belong to that person's own conversations only (mission 4.7).
func (a *Agent) memoryTool() (tool.Tool, error) {
	spec := tool.Spec{}
	spec.Name = memoryName
	spec.Description = "Keep something for later conversations: preferences, corrections, names, decisions, how things are set up here. " +
		"Save it when you learn it, without being asked; do not save what is only of use now, secrets, or what can easily be found again. " +
		"The documents are in your instructions (as they were when this session began) and small, so write densely and replace what is outdated."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in memoryInput) (tool.Result, error) {
		docs := memory.Place{Conversation: c.Conversation, Kind: c.Kind, Person: c.Person}.Documents()
		doc := docs[0]
		if in.Target == "user" {
			if len(docs) == 1 {
				return tool.Failure("Notes about a person are kept only in that person's own direct conversation, not in a shared room."), nil
			}
			doc = docs[1]
		}
		switch in.Action {
		case "set_fact":
			return a.setFact(ctx, doc.Scope, in)
		case "forget_fact":
			err := a.deps.Notes.DeleteFact(ctx, doc.Scope, in.Category, in.Key)
			if errors.Is(err, record.ErrNotFound) {
				return tool.Failure("There is no such fact."), nil
			}
			return tool.Result{Text: "Forgotten."}, err
		}
		return a.editMemory(ctx, doc, in)
	})
}

func (a *Agent) editMemory(ctx context.Context, doc memory.Document, in memoryInput) (tool.Result, error) {
	old, err := a.deps.Notes.Document(ctx, doc.Scope, doc.Name)
	if err != nil {
		return tool.Result{}, err
	}
	text, problem := editDocument(old, in, doc.Limit)
	if problem != "" {
		return tool.Failure("%s", problem), nil
	}
	if text != old {
		if err := a.deps.Notes.SetDocument(ctx, doc.Scope, doc.Name, text); err != nil {
			return tool.Result{}, err
		}
	}
	return tool.Result{Text: fmt.Sprintf("Saved. %s uses %d of %d characters.", doc.Name, utf8.RuneCountInString(text), doc.Limit)}, nil
}

func (a *Agent) setFact(ctx context.Context, scope string, in memoryInput) (tool.Result, error) {
	f := record.Fact{
		Scope: scope, Category: clipLine(in.Category, 60), Key: clipLine(in.Key, 120), Value: strings.TrimSpace(in.Value), At: a.deps.Now(),
	}
	if f.Category == "" || f.Key == "" || f.Value == "" {
		return tool.Failure("A fact needs category, key and value."), nil
	}
	if utf8.RuneCountInString(f.Value) > maxFactValue {
		return tool.Failure("A fact's value has at most %d characters; shorten it or use a document.", maxFactValue), nil
	}
	if err := a.deps.Notes.SetFact(ctx, f); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: "Saved."}, nil
}

// editDocument applies an action to a document's entries; problem is for the
// model and means that nothing changes.
func editDocument(doc string, in memoryInput, limit int) (text, problem string) {
	var entries []string
	if doc != "" {
		entries = strings.Split(doc, entryMark)
	}
	content := strings.TrimSpace(in.Content)
	if in.Action != "remove" && content == "" {
		return "", "The content is empty."
	}
	if strings.Contains("\n"+content+"\n", entryMark) {
		return "", "An entry cannot contain a line that is only §."
	}
	switch in.Action {
	case "add":
		for _, e := range entries {
			if e == content {
				return doc, ""
			}
		}
		entries = append(entries, content)
	default:
		i, problem := findEntry(entries, in.OldText)
		if problem != "" {
			return "", problem
		}
		if in.Action == "replace" {
			entries[i] = content
		} else {
			entries = append(entries[:i], entries[i+1:]...)
		}
	}
	text = strings.Join(entries, entryMark)
	if n := utf8.RuneCountInString(text); n > limit {
		return "", fmt.Sprintf("That would be %d characters and the limit is %d. Shorten it, or replace or remove older entries first. They are:\n%s", n, limit, doc)
	}
	return text, ""
}

// findEntry returns the only entry that contains part.
func findEntry(entries []string, part string) (index int, problem string) {
	if strings.TrimSpace(part) == "" {
		return 0, "old_text is empty; give a part of the entry."
	}
	var found []string
	for i, e := range entries {
		if strings.Contains(e, part) {
			found = append(found, "- "+clipLine(e, 80))
			index = i
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Sprintf("No entry contains %q.", part)
	case 1:
		return index, ""
	}
	return 0, "Several entries contain it; give a longer part:\n" + strings.Join(found, "\n")
}
