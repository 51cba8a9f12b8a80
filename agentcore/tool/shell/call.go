package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/agentcore/tool"
)

// call judges one simple command.
func (j *judge) call(c *syntax.CallExpr, depth int) {
	if len(c.Args) == 0 {
		return
	}
	args := j.words(c.Args)
	for _, a := range args {
		j.address(a.text)
	}
	if !args[0].known || args[0].glob {
		j.found(tool.Opaque, "the name of the program is computed")
		return
	}
	for _, inner := range unwrap(args) {
		j.program(inner, depth)
	}
	if names(c, "PPID") {
		j.found(tool.Forbidden, "it reaches for parley's own process")
	}
	if first := args[0].text; wrappers[args[0].base()] {
		if first == "sudo" || first == "doas" || first == "su" || first == "pkexec" {
			j.found(tool.Dangerous, "it runs with another account's rights")
		}
		if !transparent(args) {
			j.found(tool.Ordinary, "it runs a command through "+first)
		}
	}
}

// names says whether a command uses a variable.
func names(c *syntax.CallExpr, variable string) (found bool) {
	syntax.Walk(c, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		found = found || ok && p.Param != nil && p.Param.Value == variable
		return true
	})
	return found
}

// program judges a program with its arguments, wrappers taken off.
func (j *judge) program(args []word, depth int) {
	name := args[0].base()
	j.floor(name, args[1:])
	switch {
	case !args[0].known:
		j.found(tool.Opaque, "the name of the program is computed")
	case isShell(name) || name == "eval" || name == "trap":
		j.nested(name, args[1:], depth)
	case name == "env" && slices.ContainsFunc(args, func(w word) bool {
		return strings.HasPrefix(w.text, "-S") || strings.HasPrefix(w.text, "--split-string")
	}):
		j.found(tool.Opaque, "env takes a command apart while it runs")
	case name == "alias" || name == "shopt" || name == "enable" || name == "hash":
		j.aliases(name, args[1:], depth)
	case evaluates[name] && slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "$(") || strings.Contains(w.text, "`") }):
		j.found(tool.Opaque, "it evaluates a text that contains commands")
	case name == "find" || name == "fd" || name == "fdfind":
		j.find(args, depth)
	case isSafe(j, args):
	default:
		j.found(tool.Ordinary, "it runs a command")
	}
}

// evaluates are builtins that evaluate an argument as arithmetic, in which a
// subscript may run commands.
var evaluates = map[string]bool{
	"test": true, "[": true, "printf": true, "declare": true, "typeset": true, "local": true, "export": true, "readonly": true,
	"let": true, "unset": true, "read": true, "mapfile": true, "readarray": true, "wait": true,
}

// nested judges the script that a shell, eval or trap is given.
func (j *judge) nested(name string, args []word, depth int) {
	text, known, given := scriptOf(name, args)
	switch {
	case given && !known:
		j.found(tool.Opaque, "it runs a script that is computed")
	case given:
		j.script(text, depth+1)
		j.found(tool.Ordinary, "it runs a script")
	default:
		j.found(tool.Ordinary, "it starts a shell")
	}
}

// scriptOf finds the text that would be run; given is false if there is none.
func scriptOf(name string, args []word) (text string, known, given bool) {
	known = true
	switch name {
	case "eval":
		var all []string
		for _, a := range args {
			known = known && a.known && !a.glob
			all = append(all, a.text)
		}
		return strings.Join(all, " "), known, len(args) > 0
	case "trap":
		if len(args) == 0 {
			return "", true, false
		}
		return args[0].text, args[0].known, args[0].text != "-" && !strings.HasPrefix(args[0].text, "-")
	}
	for i, a := range args {
		if !a.known {
			return "", false, true // it may be an option
		}
		if !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") {
			return "", true, false // a script's file
		}
		if strings.HasPrefix(a.text, "--") || !strings.Contains(a.text, "c") {
			continue
		}
		for _, s := range args[i+1:] {
			if !s.known || !strings.HasPrefix(s.text, "-") {
				return s.text, s.known && !s.glob, true
			}
		}
		return "", false, true
	}
	return "", true, false
}

// aliases judges definitions by what they stand for.
func (j *judge) aliases(name string, args []word, depth int) {
	if name != "alias" {
		j.found(tool.Opaque, "it changes what names of commands mean")
		return
	}
	for _, a := range args {
		_, value, ok := strings.Cut(a.text, "=")
		if !a.known {
			j.found(tool.Opaque, "it changes what names of commands mean")
		} else if ok {
			j.script(value, depth+1)
		}
	}
	j.found(tool.Ordinary, "it changes what names of commands mean")
}

// find judges what find and fd run for what they find.
func (j *judge) find(args []word, depth int) {
	safe := true
	for i, a := range args {
		switch {
		case !a.known:
			j.found(tool.Ordinary, "what it looks for is computed")
		case a.text == "-delete":
			j.found(tool.Dangerous, "it deletes what it finds")
			for _, from := range args[1:i] {
				if strings.HasPrefix(from.text, "-") {
					break
				}
				j.destroys(from, "it deletes what must stay")
			}
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"}, a.text):
			j.found(tool.Ordinary, "it runs a command for what it finds")
			if i+1 < len(args) {
				j.forEach(args[1:i], args[i+1:], depth)
			}
		case strings.HasPrefix(a.text, "-fprint"), a.text == "-fls", a.text == "-files0-from":
			safe = false
		}
	}
	if args[0].text != "find" || !safe || !j.readsAll(findStarts(args[1:])) {
		j.found(tool.Ordinary, "it runs a command")
	}
}

// forEach judges a command that is run on each file below some folders.
func (j *judge) forEach(from, command []word, depth int) {
	if end := slices.IndexFunc(command, func(w word) bool { return w.text == ";" || w.text == "+" }); end >= 0 {
		command = command[:end]
	}
	if len(command) == 0 {
		return
	}
	starts := findStarts(from)
	for i, w := range command {
		if !strings.Contains(w.text, "{}") || w.text != "{}" {
			continue
		}
		for _, s := range starts {
			one := slices.Clone(command)
			one[i] = s
			for _, inner := range unwrap(one) {
				j.program(inner, depth)
			}
		}
	}
	for _, inner := range unwrap(command) {
		j.program(inner, depth)
	}
}

// findStarts are the folders in which find begins.
func findStarts(args []word) []word {
	var starts []word
	for _, a := range args {
		if slices.Contains([]string{"-H", "-L", "-P"}, a.text) {
			continue
		}
		if strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			break
		}
		starts = append(starts, a)
	}
	if len(starts) == 0 {
		starts = []word{{text: ".", known: true}}
	}
	return starts
}

// wrappers are programs that run the command in their arguments.
var wrappers = set("command builtin exec env sudo doas pkexec su nohup nice ionice chrt taskset setsid stdbuf unbuffer timeout time xargs parallel watch " +
	"chroot flock unshare nsenter runuser setpriv capsh busybox toybox strace ltrace gdb script rlwrap proot fakeroot systemd-run at batch ssh coproc then do else")

func isShell(name string) bool { return shells[name] }

var shells = set("sh bash dash ash zsh ksh mksh fish rbash csh tcsh busybox-sh")

var valueLike = regexp.MustCompile(`^([0-9.]+[smhdkKMG]?|[A-Za-z_][A-Za-z0-9_]*=.*)$`)

// unwrap returns the commands that args may run: args itself and, if it is a
// wrapper, what it may wrap. Where an option may take the next word as its value,
// both readings are returned, so that none is missed.
func unwrap(args []word) [][]word {
	out := [][]word{args}
	for depth := 0; depth < maxDepth && len(args) > 0 && wrappers[args[0].base()]; depth++ {
		var next []word
		option := false
		for i := 1; i < len(args); i++ {
			a := args[i]
			if a.known && (strings.HasPrefix(a.text, "-") || valueLike.MatchString(a.text)) {
				option = strings.HasPrefix(a.text, "-")
				continue
			}
			out = append(out, args[i:])
			next = args[i:]
			if !option {
				break
			}
			option = false
		}
		args = next
	}
	return out
}

// transparent says that a wrapper changes nothing about its command.
func transparent(args []word) bool {
	name := args[0].text
	if len(args) < 2 {
		return false
	}
	switch name {
	case "command", "time", "nice", "env", "nohup":
		return args[1].known && !strings.HasPrefix(args[1].text, "-") && !valueLike.MatchString(args[1].text)
	case "timeout":
		return args[1].known && !strings.HasPrefix(args[1].text, "-") && len(args) > 2
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
