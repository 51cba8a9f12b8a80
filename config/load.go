package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options say where the configuration may come from. The zero value is the
// process's own surroundings.
type Options struct {
	// Path is the file to load; empty: $PARLEY_CONFIG, ./parley.yaml,
	// ~/.parley/parley.yaml, and if none of them is there, the environment alone.
	Path string
	// Env looks up a variable; nil: os.LookupEnv.
	Env func(string) (string, bool)
	// Dir is the working folder; empty: the process's.
	Dir string
}

// Load finds, reads and validates the configuration. What the file does not
// mention is filled from the environment, platforms excepted: with a file, only
// the accounts written there are served. The error is an *Error with every mistake.
func Load(o Options) (*Config, error) {
	o, home, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := Default()
	e := &expander{source: c.source, env: o.Env, dir: o.Dir, home: home}
	file, data, err := read(o, home)
	if err != nil {
		return nil, err
	}
	if file != "" {
		c.source.file = file
		e.dir = filepath.Dir(file)
		c.decode(data, e)
	}
	c.fromEnvironment(e)
	c.resolve(e)
	e.missingVariables()
	c.validate()
	if err := c.source.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (o Options) withDefaults() (_ Options, home string, err error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Dir == "" {
		if o.Dir, err = os.Getwd(); err != nil {
			return o, "", fmt.Errorf("config: working folder: %w", err)
		}
	}
	if home, _ = o.Env("HOME"); home == "" {
		// Without a home, as in a bare container, ~ is the working folder.
		home = o.Dir
	}
	return o, home, nil
}

// read returns the first file there is, made absolute; a file that was named must
// be there. No file at all is no error: the path is empty.
func read(o Options, home string) (path string, data []byte, err error) {
	named := o.Path
	if named == "" {
		named, _ = o.Env("PARLEY_CONFIG")
	}
	candidates := []string{named}
	if named == "" {
		candidates = []string{"parley.yaml", filepath.Join(home, ".parley", "parley.yaml")}
	}
	for _, path := range candidates {
		path = (&expander{dir: o.Dir, home: home}).path(path)
		data, err := os.ReadFile(path)
		switch {
		case err == nil:
			return path, data, nil
		case named != "" || !errors.Is(err, fs.ErrNotExist):
			return "", nil, &Error{File: path, Problems: []Problem{{Text: "cannot be read: " + reason(err)}}}
		}
	}
	return "", nil, nil
}

// reason is the cause of a file error without the path, which the caller shows.
func reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// decode reads the file's one YAML document into c.
func (c *Config) decode(data []byte, e *expander) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			c.source.addYAML(err)
		}
		return
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		c.source.add(0, "the file has more than one YAML document; keep one")
	}
	root := doc.Content[0]
	d := decoder{source: c.source, expand: e}
	d.value(root, reflect.ValueOf(c).Elem(), "")
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// addYAML reports a syntax error at its line. The library's wording names no value
// but for an unknown anchor, which may be a secret that begins with an asterisk.
func (s *source) addYAML(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		line, _ = strconv.Atoi(text[m[2]:m[3]])
		text = text[:m[0]] + text[m[1]:]
	}
	if strings.Contains(text, "anchor") {
		text = "a value that begins with * must be in quotes"
	}
	if strings.Contains(text, "cannot start any token") {
		text += "; YAML is indented with spaces, not tabs, and a value that begins with @ or ` must be in quotes"
	}
	s.add(line, "not valid YAML: %s", text)
}

// resolve finishes the values that name files and folders.
func (c *Config) resolve(e *expander) {
	c.DataDir = e.path(c.DataDir)
	if c.Tools.Workspace != "" {
		c.Tools.Workspace = e.path(c.Tools.Workspace)
	}
	if c.Skills.Dir != "" {
		c.Skills.Dir = e.path(c.Skills.Dir)
	}
	personality, err := e.file(c.Agent.Personality)
	if err != nil {
		c.source.addFor(fmt.Errorf("agent.personality: %w", err))
	}
	c.Agent.Personality = strings.TrimSpace(personality)
	c.source.hide(password(c.Database.URL))
}
