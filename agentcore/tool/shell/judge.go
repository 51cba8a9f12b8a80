// Package shell judges a command line by its syntax tree, never by its letters, so
// that quoting, nesting and wrappers change nothing (APR-004, APR-005). It says of a
// line that it is
//
//   - safe: programs that only read, on files inside the working folder;
//   - ordinary or dangerous: it is to be asked for;
//   - opaque: what would run is only known while it runs, so that no standing
//     consent can cover it. What cannot be parsed is opaque;
//   - forbidden: it destroys the machine or a home, ends the machine or parley, or
//     reads parley's own secrets.
//
// A line is as bad as the worst command in it. The judgement reads the file system
// to follow links and runs nothing. It is about what the line itself says: what a
// program or script that it starts does is held by the sandbox.
package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/agentcore/tool"
)

const (
	maxLine  = 64 << 10 // bytes that are parsed
	maxDepth = 8        // scripts within scripts
)

// Place is where a command line would run.
type Place struct {
	// Folder is the working folder, absolute; it is the HOME of commands too.
	Folder string
	// Homes are people's home folders, Private the files and folders of parley that
	// no command may touch. Folder may lie inside a private one.
	Homes, Private []string
}

// Finding is what is known of a command line.
type Finding struct {
	Danger tool.Danger
	// Reason is part of a sentence: "it deletes files".
	Reason string
}

// Judge says what a command line for bash would do.
func Judge(line string, p Place) Finding {
	j := &judge{place: p, dirs: []string{p.Folder}, worst: Finding{tool.Safe, ""}}
	j.script(line, 0)
	return j.worst
}

// judge walks one command line.
type judge struct {
	place Place
	// dirs are the folders in which a command may run, elsewhere says that there may
	// be others.
	dirs      []string
	elsewhere bool
	// assigned are the variables that the line sets.
	assigned map[string]bool
	worst    Finding
}

// found keeps the worst.
func (j *judge) found(d tool.Danger, reason string) {
	if rank(d) > rank(j.worst.Danger) {
		j.worst = Finding{d, reason}
	}
}

// rank orders the grades from harmless to forbidden.
func rank(d tool.Danger) int {
	return slices.Index([]tool.Danger{tool.Safe, tool.Ordinary, tool.Dangerous, tool.Opaque, tool.Forbidden}, d)
}

// script judges a text that a shell would run.
func (j *judge) script(text string, depth int) {
	if depth > maxDepth || len(text) > maxLine {
		j.found(tool.Opaque, "it is too long or too deeply nested to be judged")
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		j.found(tool.Opaque, "it cannot be parsed")
		return
	}
	j.prepare(f)
	j.shape(f.Stmts)
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			j.redirects(n)
		case *syntax.CallExpr:
			j.call(n, depth)
		case *syntax.FuncDecl:
			j.bomb(n)
		case *syntax.BinaryCmd:
			j.pipe(n)
		}
		return true
	})
}

// prepare notes what has to be known before any command is judged: the variables
// that are set, and the folders that are gone to.
func (j *judge) prepare(f *syntax.File) {
	if j.assigned == nil {
		j.assigned = map[string]bool{}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				j.assigned[n.Name.Value] = true
			}
		case *syntax.WordIter:
			j.assigned[n.Name.Value] = true
		}
		return true
	})
	syntax.Walk(f, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			j.moves(j.words(c.Args))
		}
		return true
	})
}

// moves notes where cd goes. Which command runs where is not followed: each is
// judged as if it ran in all of these folders.
func (j *judge) moves(args []word) {
	for len(args) > 1 && (args[0].text == "command" || args[0].text == "builtin") {
		args = args[1:]
	}
	if len(args) == 0 || !args[0].known || (args[0].text != "cd" && args[0].text != "pushd") {
		return
	}
	targets := slices.DeleteFunc(slices.Clone(args[1:]), func(w word) bool { return w.known && strings.HasPrefix(w.text, "-") && len(w.text) > 1 })
	switch {
	case len(targets) == 0:
		return // home, which is the working folder
	case !targets[0].known || targets[0].glob || targets[0].text == "-" || j.assigned["CDPATH"]:
		j.elsewhere = true
		return
	}
	for _, d := range slices.Clone(j.dirs) {
		if to := resolve(d, targets[0].text); !slices.Contains(j.dirs, to) {
			j.dirs = append(j.dirs, to)
		}
	}
}

// shape lets only a sequence of plain commands be safe: what loops, branches, sets
// or substitutes is worth a look.
func (j *judge) shape(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		plain := !s.Background && !s.Coprocess
		switch c := s.Cmd.(type) {
		case *syntax.CallExpr:
			plain = plain && len(c.Assigns) == 0
		case *syntax.BinaryCmd:
			j.shape([]*syntax.Stmt{c.X, c.Y})
		case *syntax.Block:
			j.shape(c.Stmts)
		case *syntax.Subshell:
			j.shape(c.Stmts)
		default:
			plain = false
		}
		if !plain {
			j.found(tool.Ordinary, "it runs a script")
		}
	}
}

// pipe judges what is fed to a shell or an interpreter.
func (j *judge) pipe(b *syntax.BinaryCmd) {
	if b.Op != syntax.Pipe && b.Op != syntax.PipeAll {
		return
	}
	c, ok := b.Y.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	args := j.words(c.Args)
	for _, inner := range unwrap(args) {
		if isShell(inner[0].base()) || inner[0].base() == "source" || inner[0].base() == "." {
			j.found(tool.Opaque, "it runs what another command prints")
		}
	}
}

// bomb finds functions that start themselves again beside themselves.
func (j *judge) bomb(f *syntax.FuncDecl) {
	name, calls, multiplies := f.Name.Value, false, false
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if args := j.words(n.Args); len(args) > 0 && args[0].text == name {
				calls = true
			}
		case *syntax.BinaryCmd:
			multiplies = multiplies || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Stmt:
			multiplies = multiplies || n.Background
		}
		return true
	})
	if calls && multiplies {
		j.found(tool.Forbidden, "it starts itself again without end")
	}
}

// redirects judges where a statement reads from and writes to.
func (j *judge) redirects(s *syntax.Stmt) {
	for _, r := range s.Redirs {
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc {
			j.fed(s, r)
			continue
		}
		w := j.word(r.Word)
		switch {
		case (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && w.known && strings.Trim(w.text, "0123456789-") == "":
			// From one descriptor to another.
		case !w.known || w.glob:
			j.found(tool.Ordinary, "it reads or writes a file whose name is computed")
		case strings.HasPrefix(w.text, "/dev/tcp/") || strings.HasPrefix(w.text, "/dev/udp/"):
			j.address(w.text)
			j.found(tool.Dangerous, "it opens a network connection")
		case r.Op == syntax.RdrIn:
			j.reads(w)
		case w.text == "/dev/null":
		default:
			j.writes(w)
		}
	}
}

// fed judges a text that a command is given as its input.
func (j *judge) fed(s *syntax.Stmt, r *syntax.Redirect) {
	texts, known := j.input(r)
	if !known {
		j.found(tool.Ordinary, "it is given a text that is computed")
	}
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	for _, inner := range unwrap(j.words(c.Args)) {
		if !isShell(inner[0].base()) {
			continue
		}
		if !known {
			j.found(tool.Opaque, "it runs a script that is computed")
			continue
		}
		for _, text := range texts {
			j.script(text, 1)
		}
		j.found(tool.Ordinary, "it runs a script")
	}
}

// input returns what a redirection gives to a command: of a here-document as it
// stands and as it is where its end was not quoted, both of which are judged.
func (j *judge) input(r *syntax.Redirect) (texts []string, known bool) {
	if r.Op == syntax.WordHdoc {
		w := j.word(r.Word)
		return []string{w.text}, w.known
	}
	var b strings.Builder
	if r.Hdoc != nil {
		for _, p := range r.Hdoc.Parts {
			lit, ok := p.(*syntax.Lit)
			if !ok {
				return nil, false
			}
			b.WriteString(lit.Value)
		}
	}
	return []string{b.String(), unescape(b.String(), "\\$`")}, true
}
