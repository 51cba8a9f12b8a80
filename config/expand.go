package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/config/secret"
)

// variable matches ${NAME}; a doubled dollar sign keeps it as it is written.
var variable = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expander resolves what a value may refer to: variables of the environment, files
// that hold secrets, and paths.
type expander struct {
	*source
	env func(string) (string, bool)
	// dir is what relative paths begin from, home what ~ stands for.
	dir, home string
	// missing are unset variables outside of secrets, firstLine where the first is.
	missing   []string
	firstLine int
}

// text expands the variables in a value; ok is false if one of them is not set.
func (e *expander) text(n *yaml.Node) (text string, ok bool) {
	text, unset := e.variables(n.Value)
	for _, name := range unset {
		if !slices.Contains(e.missing, name) {
			e.missing = append(e.missing, name)
		}
		if e.firstLine == 0 {
			e.firstLine = n.Line
		}
	}
	return text, len(unset) == 0
}

// secret expands a secret, which may be file:PATH or command:LINE. An unset variable
// leaves it empty, which switches off what it is for.
func (e *expander) secret(n *yaml.Node, path string) secret.String {
	text, unset := e.variables(n.Value)
	if len(unset) > 0 {
		e.unset[path] = unset[0]
		return secret.String{}
	}
	s := secret.New(strings.TrimSpace(text))
	if from := e.from(text); from != nil {
		var err error
		if s, err = secret.Read(context.Background(), from); err != nil {
			e.add(n.Line, "%s: %v", path, err)
			return secret.String{}
		}
	}
	e.hide(s.Reveal())
	return s
}

// from is where a secret is kept, nil if it is the text itself.
func (e *expander) from(text string) secret.Source {
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		return secret.File(e.path(path))
	}
	if line, ok := strings.CutPrefix(text, "command:"); ok {
		return secret.Command{Line: line, Dir: e.dir}
	}
	return nil
}

// missingVariables reports all unset variables in one problem.
func (e *expander) missingVariables() {
	switch len(e.missing) {
	case 0:
	case 1:
		e.add(e.firstLine, "the environment variable %s is not set", e.missing[0])
	default:
		slices.Sort(e.missing)
		e.add(e.firstLine, "the environment variables %s are not set", strings.Join(e.missing, ", "))
	}
}

func (e *expander) variables(s string) (text string, unset []string) {
	text = variable.ReplaceAllStringFunc(s, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		name := ref[2 : len(ref)-1]
		v, ok := e.env(name)
		if !ok {
			unset = append(unset, name)
		}
		if confidential.MatchString(name) {
			e.hide(v)
		}
		return v
	})
	return text, unset
}

var confidential = regexp.MustCompile(`KEY|TOKEN|SECRET|PASSWORD|DATABASE_URL`)

// hide keeps a value out of messages. Very short ones would cover ordinary words.
func (s *source) hide(value string) {
	if len(value) >= 6 {
		s.secrets = append(s.secrets, value)
	}
}

// file returns the content of file:PATH, or the text itself.
func (e *expander) file(text string) (string, error) {
	path, ok := strings.CutPrefix(text, "file:")
	if !ok {
		return text, nil
	}
	b, err := os.ReadFile(e.path(path))
	if err != nil {
		return "", fmt.Errorf("cannot read the file: %w", err)
	}
	return string(b), nil
}

// path makes a path absolute.
func (e *expander) path(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return filepath.Join(e.home, p[1:])
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(e.dir, p)
}
