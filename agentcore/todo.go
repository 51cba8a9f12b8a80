package agentcore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/agentcore/tool"
)

const (
	maxTodos       = 256
	maxTodoContent = 4000 // characters
)

// todoItem is one task of a lineage's list.
type todoItem struct {
	ID      string `json:"id" jsonschema:"a short id of your choice, kept when the item changes"`
	Content string `json:"content,omitempty" jsonschema:"what is to be done; may be left out when merging a new status"`
	Status  string `json:"status" jsonschema:"where it stands; at most one item should be in_progress" enum:"pending,in_progress,completed,cancelled"`
}

type todoInput struct {
	Items []todoItem `json:"items,omitempty" jsonschema:"the tasks to write; leave it out to read the list"`
	Merge bool       `json:"merge,omitempty" jsonschema:"true: change and add only these items by id; false: they replace the whole list"`
}

// todo keeps the task list of the lineage, so that it outlives a compression.
func (a *Agent) todo() (tool.Tool, error) {
	spec := tool.Spec{}
	spec.Name = "todo"
	spec.Description = "The task list of this conversation. Write one for work of three or more steps, keep it current (mark an item in_progress before you begin it and " +
		"completed at once when it is done), and read it again after a summary of the conversation. Every call returns the whole list. Without items it only reads."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in todoInput) (tool.Result, error) {
		raw, err := a.deps.Todos.TodoList(ctx, c.Root)
		if err != nil {
			return tool.Result{}, err
		}
		list, err := parseTodos(raw)
		if err != nil {
			return tool.Result{}, err
		}
		if len(in.Items) == 0 && in.Merge || in.Items == nil {
			return tool.Result{Text: renderTodos(list)}, nil
		}
		if !in.Merge {
			list = nil
		}
		for _, it := range in.Items {
			if list, err = setTodo(list, it); err != nil {
				return tool.Failure("Nothing was changed: %v.", err), nil
			}
		}
		if raw, err = json.Marshal(list); err != nil {
			return tool.Result{}, err
		}
		if err := a.deps.Todos.SetTodoList(ctx, c.Root, raw); err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Text: renderTodos(list)}, nil
	})
}

func parseTodos(raw json.RawMessage) (list []todoItem, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("stored task list: %w", err)
	}
	return list, nil
}

// setTodo changes the item of that id or appends it; of equal ids the last wins.
func setTodo(list []todoItem, it todoItem) ([]todoItem, error) {
	it.ID, it.Content = strings.TrimSpace(it.ID), strings.TrimSpace(it.Content)
	if it.ID == "" {
		return nil, fmt.Errorf("an item has no id")
	}
	if len([]rune(it.Content)) > maxTodoContent {
		return nil, fmt.Errorf("item %q is longer than %d characters", it.ID, maxTodoContent)
	}
	i := slices.IndexFunc(list, func(x todoItem) bool { return x.ID == it.ID })
	switch {
	case i >= 0 && it.Content == "":
		list[i].Status = it.Status
	case i >= 0:
		list[i] = it
	case it.Content == "":
		return nil, fmt.Errorf("item %q is new and has no content", it.ID)
	case len(list) == maxTodos:
		return nil, fmt.Errorf("the list is full (%d items)", maxTodos)
	default:
		list = append(list, it)
	}
	return list, nil
}

func renderTodos(list []todoItem) string {
	if len(list) == 0 {
		return "The task list is empty."
	}
	marks := map[string]string{"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}
	var b strings.Builder
	done := 0
	for _, it := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", marks[it.Status], it.ID, it.Content)
		if it.Status == "completed" || it.Status == "cancelled" {
			done++
		}
	}
	fmt.Fprintf(&b, "%d of %d are done.", done, len(list))
	return b.String()
}
