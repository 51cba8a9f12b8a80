package shell

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command as the shell would see it after quotes and escapes.
type word struct {
	text string
	// known says that text is the whole of it: nothing is put in while it runs.
	known bool
	// glob says that it has unquoted wildcards.
	glob bool
}

// base is the name of the program that the word names.
func (w word) base() string {
	if !w.known {
		return ""
	}
	return filepath.Base(w.text)
}

func (j *judge) words(ws []*syntax.Word) []word {
	out := make([]word, len(ws))
	for i, w := range ws {
		out[i] = j.word(w)
	}
	return out
}

// word evaluates a word. $HOME and $PWD are known as long as nothing sets them.
func (j *judge) word(w *syntax.Word) word {
	out := word{known: true}
	if w == nil {
		return out
	}
	var text strings.Builder
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(lit.Value, "~") {
			text.WriteString(j.home(lit.Value, &out))
			wild, braces := special(lit.Value)
			out.glob, out.known = wild, out.known && !braces
			continue
		}
		text.WriteString(j.part(&out, p, false))
	}
	if out.known {
		out.text = text.String()
	}
	return out
}

// part evaluates a part of a word and notes in w what is special about it.
func (j *judge) part(w *word, p syntax.WordPart, quoted bool) string {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			return unescape(p.Value, "\"\\$`")
		}
		wild, braces := special(p.Value)
		w.glob = w.glob || wild
		w.known = w.known && !braces // it becomes several words
		return unescape(p.Value, "")
	case *syntax.SglQuoted:
		if !p.Dollar {
			return p.Value
		}
		text, _, err := expand.Format(nil, p.Value, nil)
		w.known = w.known && err == nil
		text, _, _ = strings.Cut(text, "\x00")
		return text
	case *syntax.DblQuoted:
		var text strings.Builder
		for _, q := range p.Parts {
			text.WriteString(j.part(w, q, true))
		}
		return text.String()
	case *syntax.ParamExp:
		w.known = w.known && j.standing(p)
		return j.place.Folder
	}
	w.known = false // substitutions, arithmetic, extended globs
	return ""
}

// standing says whether an expansion is the working folder for certain.
func (j *judge) standing(p *syntax.ParamExp) bool {
	if p.Param == nil || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Names != 0 || p.Exp != nil || j.assigned[p.Param.Value] {
		return false
	}
	return p.Param.Value == "HOME" || p.Param.Value == "PWD" && len(j.dirs) == 1 && !j.elsewhere
}

// home evaluates a word that begins with a tilde.
func (j *judge) home(lit string, w *word) string {
	name, rest, slash := strings.Cut(lit[1:], "/")
	if slash {
		rest = "/" + unescape(rest, "")
	}
	switch {
	case name == "":
		w.known = !j.assigned["HOME"]
		return j.place.Folder + rest
	case strings.ContainsAny(name, "+-0123456789\\"):
		w.known = false // a folder of the shell's own stack, or no tilde at all
		return ""
	}
	for _, h := range j.place.Homes {
		if filepath.Base(h) == name {
			return h + rest
		}
	}
	return "/home/" + name + rest
}

// unescape takes the backslashes off: before any character, or only before those
// given.
func unescape(s, only string) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0 || s[i+1] == '\n') {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// special finds unquoted wildcards and braces that make several words of one.
func special(lit string) (wild, braces bool) {
	for i := 0; i < len(lit); i++ {
		switch lit[i] {
		case '\\':
			i++
		case '*', '?':
			wild = true
		case '[':
			wild = wild || strings.IndexByte(lit[i:], ']') > 0
		case '{':
			braces = braces || strings.ContainsAny(lit[i:], ",.")
		}
	}
	return wild, braces
}

// resolve is a path as seen from a folder.
func resolve(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// places are all the paths that a word may mean.
func (j *judge) places(text string) []string {
	paths := make([]string, len(j.dirs))
	for i, d := range j.dirs {
		paths[i] = resolve(d, text)
	}
	return paths
}

// inside says whether path is dir or lies in it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}
