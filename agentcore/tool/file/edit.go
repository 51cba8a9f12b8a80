package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/agentcore/tool"
)

const editDescription = `Replace a piece of text in a file of the conversation's folder. old_text must be in the file exactly once, white space included (without the line numbers of read_file); with replace_all, every place is changed. Line ends, encoding and mode stay.`

type editInput struct {
	Path       string `json:"path" jsonschema:"the file, relative to the folder"`
	OldText    string `json:"old_text" jsonschema:"what is there now, with enough around it to be there only once"`
	NewText    string `json:"new_text" jsonschema:"what is to stand there; empty takes it out"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"change every place"`
}

func editFile(_ context.Context, f folder, in editInput) (tool.Result, error) {
	name, err := f.local(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if in.OldText == "" {
		return tool.Failure("old_text is empty. To write a whole file, use write_file."), nil
	}
	if in.OldText == in.NewText {
		return tool.Failure("old_text and new_text are the same; there is nothing to change."), nil
	}
	real, err := f.target(name)
	if err != nil {
		return tool.Result{}, err
	}
	l, err := f.load(real)
	switch {
	case errors.Is(err, errTooLarge):
		return tool.Failure("%s has %s, too large to be edited here (at most %s); use terminal.", shown(name), sized(l.info.Size()), sized(sizeLimit)), nil
	case err != nil:
		return tool.Result{}, cannot("changed", name, err)
	case l.kind.binary != "":
		return tool.Failure("%s is a binary file (%s); it cannot be edited as text.", shown(name), l.kind.binary), nil
	}
	before, after := l.fit(in)
	places := linesOf(l.text, before)
	switch {
	case len(places) == 0:
		return tool.Failure("old_text is not in %s; nothing was changed. It must be exactly what is there, white space included.%s", shown(name), hint(l.text, in.OldText)), nil
	case len(places) > 1 && !in.ReplaceAll:
		return tool.Failure("old_text is in %s %d times, in %s; nothing was changed. Give more of what is around the one place, or set replace_all.", shown(name), len(places), named(places)), nil
	}
	text := strings.ReplaceAll(l.text, before, after)
	b, err := l.kind.encode(text)
	if err != nil {
		return tool.Result{}, err
	}
	if len(b) > sizeLimit {
		return tool.Failure("%s would have %s, more than %s; nothing was changed.", shown(name), sized(int64(len(b))), sized(sizeLimit)), nil
	}
	if err := f.replace(real, b, l.info); err != nil {
		return tool.Result{}, cannot("changed", name, err)
	}
	return tool.Result{Text: fmt.Sprintf("Changed %s in %s.", shown(name), named(places))}, nil
}

// fit gives the texts the line ends of the file. Where it has both kinds, they are
// taken as they come, and as CRLF if they are not there so.
func (l loaded) fit(in editInput) (before, after string) {
	end := lineEnd(l.text)
	if end == "" && !strings.Contains(l.text, in.OldText) {
		end = "\r\n"
	}
	if end == "\r\n" {
		return withLineEnd(in.OldText, end), withLineEnd(in.NewText, end)
	}
	return in.OldText, in.NewText
}

// linesOf lists the lines in which a piece begins.
func linesOf(text, piece string) []int {
	var lines []int
	line := 1
	for {
		i := strings.Index(text, piece)
		if i < 0 {
			return lines
		}
		line += strings.Count(text[:i], "\n")
		lines = append(lines, line)
		line += strings.Count(piece, "\n")
		text = text[i+len(piece):]
	}
}

// named are line numbers in words, the first few of them.
func named(lines []int) string {
	const most = 10
	words := make([]string, 0, most)
	for _, n := range lines[:min(len(lines), most)] {
		words = append(words, fmt.Sprint(n))
	}
	if len(lines) > most {
		words = append(words, "…")
	}
	if len(lines) == 1 {
		return "line " + words[0]
	}
	return "lines " + strings.Join(words, ", ")
}

// hint tells where the first line of a piece that was not found nearly is.
func hint(text, piece string) string {
	want := ""
	for line := range strings.Lines(piece) {
		if want = strings.Join(strings.Fields(line), " "); want != "" {
			break
		}
	}
	if want == "" {
		return ""
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.Join(strings.Fields(line), " ") == want {
			return fmt.Sprintf(" Its first line is like line %d: compare the white space there, and the lines that follow it.", n)
		}
	}
	return ""
}
