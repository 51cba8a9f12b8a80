package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley/config/secret"
)

// Problem is one mistake in the configuration.
type Problem struct {
	// Line is 1-based; 0 if the mistake has no place in the file.
	Line int `json:"line,omitempty"`
	// Text begins with the key, where there is one.
	Text string `json:"text"`
}

// Error is every mistake of a configuration, in the order of the file.
type Error struct {
	// File is the path as it was found; empty: the environment.
	File     string    `json:"file"`
	Problems []Problem `json:"problems"`
}

// Error has a line for each problem, each beginning with file:line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		switch {
		case e.File == "":
			lines[i] = "environment: " + p.Text
		case p.Line == 0:
			lines[i] = e.File + ": " + p.Text
		default:
			lines[i] = fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Text)
		}
	}
	return strings.Join(lines, "\n")
}

// source remembers where a configuration came from, so that what is found wrong
// later can still be shown at its line.
type source struct {
	file string
	// lines has the line of each key that was said, by its dotted path; elements of
	// a list go by their name where they have one.
	lines map[string]int
	// unset has the environment variable that left a secret empty, by path.
	unset map[string]string
	// secrets are values that must not appear in a message.
	secrets  []string
	problems []Problem
}

func (s *source) said(path string) bool { return s.lines[path] > 0 }

func (s *source) add(line int, format string, args ...any) {
	s.problems = append(s.problems, Problem{Line: line, Text: fmt.Sprintf(format, args...)})
}

// addFor adds an error that begins with "key: ".
func (s *source) addFor(err error) { s.problems = append(s.problems, s.place(err)) }

// place finds the line of the key that an error begins with, or of the nearest
// section around it.
func (s *source) place(err error) Problem {
	path, _, _ := strings.Cut(err.Error(), ": ")
	for path != "" && !s.said(path) {
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return Problem{Line: s.lines[path], Text: s.redact(err.Error())}
}

// Wrong makes an error that was found after loading, and begins with "key: ", one
// of the configuration, at the line of that key.
func (c *Config) Wrong(err error) *Error {
	return &Error{File: c.source.file, Problems: []Problem{c.source.place(err)}}
}

// err returns all problems in the order of the file, or nil.
func (s *source) err() error {
	if len(s.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Text, b.Text))
	})
	for i := range s.problems {
		s.problems[i].Text = s.redact(s.problems[i].Text)
	}
	return &Error{File: s.file, Problems: s.problems}
}

// redact covers a key pasted into the wrong field, or a URL that holds a password.
func (s *source) redact(text string) string {
	for _, v := range s.secrets {
		text = strings.ReplaceAll(text, v, secret.Mask)
	}
	return text
}
