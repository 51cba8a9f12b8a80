package parley_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A row of docs/cases.md names a case, what it is, and the tests that it is met by;
// reference is one of them. Rows at the end hold cases that are not met.
var (
	caseID    = regexp.MustCompile(`[A-Z]{3}-[0-9]{3}`)
	caseRow   = regexp.MustCompile(`^\| [A-Z]{3}-[0-9]{3} [^|]+ \| ([^|]+) \|$`)
	reference = regexp.MustCompile("^`([a-z/]+): ([^`/]+)(?:/([^`]+))?`$")
)

// TestCases holds docs/cases.md to the tests that are there: each case stands in it
// once, and each test that it names exists, with its part.
func TestCases(t *testing.T) {
	tests, names := existingTests(t)
	text, err := os.ReadFile("docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, id := range caseID.FindAllString(cell, -1) {
			if seen[id] {
				t.Errorf("docs/cases.md:%d: %s stands here twice", i+1, id)
			}
			seen[id] = true
		}
		row := caseRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		for _, ref := range strings.Split(row[1], ", `") {
			m := reference.FindStringSubmatch("`" + strings.TrimPrefix(ref, "`"))
			switch {
			case m == nil:
				t.Errorf("docs/cases.md:%d: %q is neither `package: TestName` nor `script: NAME`", i+1, ref)
			case m[1] == "script":
				if _, err := os.Stat(filepath.Join("cmd/parley/testdata/script", m[2]+".txtar")); err != nil {
					t.Errorf("docs/cases.md:%d: %v", i+1, err)
				}
			case !slices.Contains(tests[m[1]], m[2]):
				t.Errorf("docs/cases.md:%d: there is no test %s in %s", i+1, m[2], m[1])
			case m[3] != "" && !names[m[1]+m[3]] && !names[m[3]]:
				t.Errorf("docs/cases.md:%d: no test of %s has a part named %q", i+1, m[1], m[3])
			}
		}
	}
	if len(seen) == 0 {
		t.Error("docs/cases.md has no cases")
	}
}

// existingTests lists the tests of each package, and all texts in them, the names of
// their parts among them, behind the package's name; those of test packages, where
// suites live, stand alone.
func existingTests(t *testing.T) (tests map[string][]string, names map[string]bool) {
	t.Helper()
	tests, names = map[string][]string{}, map[string]bool{}
	for _, f := range sources(t) {
		if !f.test && !isTestPackage(f.dir) {
			continue
		}
		owner := f.dir
		if isTestPackage(f.dir) {
			owner = ""
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if f.test && n.Recv == nil {
					tests[f.dir] = append(tests[f.dir], n.Name.Name)
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					s, _ := strconv.Unquote(n.Value)
					names[owner+s] = true
				}
			}
			return true
		})
	}
	return tests, names
}
