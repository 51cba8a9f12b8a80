package prompt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// skillFile is what the folder of a skill holds.
const skillFile = "SKILL.md"

// maxMatching is how many skills one message brings in at most.
const maxMatching = 3

// Skill is an instruction that the owner has installed: a folder with a SKILL.md,
// whose front matter has name, description and triggers. The index of all skills is
// in the system prompt; the body comes with the messages that call for it, so that
// the cached prefix stays as it is.
type Skill struct {
	Name, Description string
	// Triggers are words or phrases, beside the name, that call for it.
	Triggers []string
	Body     string
	// Folder is where the files are that the body may speak of.
	Folder string
}

var skillName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ReadSkills reads the skills of a folder's folders, sorted by name. One that cannot
// be read is left out and is an error of the second result; the others are good. No
// such folder means no skills. Nothing outside the folder is read.
func ReadSkills(dir string) ([]Skill, []error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{fmt.Errorf("prompt: skills: %w", err)}
	}
	defer root.Close()
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, []error{fmt.Errorf("prompt: skills: %w", err)}
	}
	var skills []Skill
	var errs []error
	for _, f := range folders {
		text, err := readPlain(root, filepath.Join(f.Name(), skillFile))
		if errors.Is(err, fs.ErrNotExist) || err != nil && !f.IsDir() && f.Type()&fs.ModeSymlink == 0 {
			continue // some other file or folder
		}
		var s Skill
		if err == nil {
			s, err = parseSkill(text)
		}
		if err == nil && slices.ContainsFunc(skills, func(o Skill) bool { return strings.EqualFold(o.Name, s.Name) }) {
			err = fmt.Errorf("there is another skill %q", s.Name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("prompt: skill %s: %w", f.Name(), err))
			continue
		}
		s.Folder = filepath.Join(dir, f.Name())
		skills = append(skills, s)
	}
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return skills, errs
}

// triggers may be written as a list or with commas.
type triggers []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *triggers) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = strings.Split(n.Value, ",")
		return nil
	}
	return n.Decode((*[]string)(t))
}

// parseSkill reads a SKILL.md. Fields of the front matter that it does not know are
// other programs' and are let be.
func parseSkill(text string) (Skill, error) {
	text = strings.ReplaceAll(visible(strings.TrimPrefix(text, "\uFEFF")), "\r\n", "\n")
	front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---")
	if !ok || !strings.HasPrefix(text, "---\n") {
		return Skill{}, errors.New("it does not begin with front matter between two lines of ---")
	}
	_, body, _ = strings.Cut(body, "\n")
	var meta struct {
		Name        string   `yaml:"name"`
		Description string   `yaml:"description"`
		Triggers    triggers `yaml:"triggers"`
	}
	if err := yaml.Unmarshal([]byte(front), &meta); err != nil {
		return Skill{}, fmt.Errorf("front matter: %w", err)
	}
	s := Skill{Name: meta.Name, Description: strings.TrimSpace(meta.Description), Body: cut(strings.TrimSpace(body))}
	for _, t := range meta.Triggers {
		if t = strings.TrimSpace(t); t != "" {
			s.Triggers = append(s.Triggers, t)
		}
	}
	switch {
	case !skillName.MatchString(s.Name):
		return Skill{}, fmt.Errorf("its name %s is not made of letters, digits, - and _", quote(s.Name, 60))
	case s.Body == "":
		return Skill{}, errors.New("it has no text below the front matter")
	}
	return s, nil
}

// skillCommand names one skill in so many words.
var skillCommand = regexp.MustCompile(`^\s*[/!]skill\s+(\S+)`)

// Matching returns the skills that a message calls for, at most three: the one that
// it begins with as "/skill NAME", else those whose name or a trigger stands in it as
// a whole word, whatever its case, the ones with more of their words first.
func Matching(skills []Skill, message string) []Skill {
	if m := skillCommand.FindStringSubmatch(message); m != nil {
		for _, s := range skills {
			if strings.EqualFold(s.Name, m[1]) {
				return []Skill{s}
			}
		}
	}
	text := strings.ToLower(message)
	count := map[string]int{}
	var found []Skill
	for _, s := range skills {
		for _, w := range append([]string{s.Name}, s.Triggers...) {
			if hasWord(text, strings.ToLower(w)) {
				count[s.Name]++
			}
		}
		if count[s.Name] > 0 {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Skill) int { return count[b.Name] - count[a.Name] })
	return found[:min(len(found), maxMatching)]
}

// hasWord says that word stands in text with no letter, digit or _ at its sides. In
// writing without spaces every character is a side.
func hasWord(text, word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	for from := 0; word != ""; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(word):])
		if !joined(before, first) && !joined(last, after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		from = i + size
	}
	return false
}

// joined says that two neighbours belong to one word.
func joined(a, b rune) bool {
	letter := func(r rune) bool {
		return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
	}
	return letter(a) && letter(b) && !unspaced(a) && !unspaced(b)
}

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// Text is the skill as the model reads it beside a message.
func (s Skill) Text() string {
	name := quote(s.Name, 64)
	return fmt.Sprintf("[Skill %s: instructions of the owner for this. Its files are in %s.]\n%s\n[End of skill %s.]", name, quote(s.Folder, 500), s.Body, name)
}

func skillIndex(skills []Skill) string {
	if len(skills) == 0 {
		return ""
	}
	skills = slices.Clone(skills)
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	lines := []string{"# Skills", "Instructions of the owner for certain tasks. They stand beside the messages that call for them by a word."}
	for _, s := range skills {
		lines = append(lines, fmt.Sprintf("- %s: %s", quote(s.Name, 60), quote(s.Description, 240)))
	}
	return strings.Join(lines, "\n")
}
