// Package parley_test holds the whole module to its architecture: who may import
// whom, what is documented, and how large a thing may grow. ARCHITECTURE.md gives
// the reasons.
package parley_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imports is who may import whom inside the module. A pattern is a folder, "x/*"
// for the folders in it, "x/**" for all below. The first row that matches a package
// holds; a package without a row fails, so that a new one gets its place on purpose.
var imports = []struct {
	packages string
	may      string
}{
	{"gateway/chat", ""},
	{"gateway/killpoint", ""},
	{"agentcore/llm", ""},
	{"config/secret", ""},

	{"**test", "**"},
	{"cmd/**", "**"},
	{"config", "adapters/* agentcore agentcore/engine agentcore/llm agentcore/provider agentcore/spending agentcore/tool/* config/secret gateway gateway/httpserver store"},

	{"gateway/markdown gateway/healing", "gateway/chat"},
	{"gateway gateway/httpserver", "gateway/** agentcore agentcore/engine agentcore/history agentcore/llm agentcore/schedule store/record config/secret"},

	{"store/record", "gateway/chat agentcore/llm"},
	{"store/migrations", ""},
	{"store", "store/record store/migrations gateway/chat gateway/killpoint agentcore/llm config/secret"},

	{"adapters/*", "gateway/chat gateway/healing gateway/markdown gateway/killpoint config/secret"},

	{"agentcore/provider/wire", "agentcore/llm config/secret"},
	{"agentcore/provider/*", "agentcore/llm agentcore/provider/wire config/secret"},
	{"agentcore/provider", "agentcore/llm config/secret"},
	{"agentcore/tool/terminal", "agentcore/tool agentcore/tool/shell agentcore/llm store/record config/secret"},
	{"agentcore/tool/*", "agentcore/tool agentcore/llm config/secret"},
	{"agentcore/spending", "agentcore/llm store/record"},
	{"agentcore/picture", "agentcore/llm"},
	{"agentcore/schedule", "store/record"},
	{"agentcore/history agentcore/engine agentcore/prompt agentcore/memory agentcore/tool",
		"agentcore/llm agentcore/history agentcore/spending store/record gateway/chat gateway/killpoint"},
	{"agentcore", "agentcore/* store/record gateway/chat gateway/killpoint"},
}

// libraries may be imported in these packages only, and in their tests.
var libraries = []struct{ module, packages string }{
	{"github.com/jackc/pgx", "store store/storetest"},
	{"github.com/pressly/goose", "store"},
	{"github.com/go-telegram-bot-api", "adapters/telegram"},
	{"github.com/slack-go/slack", "adapters/slack"},
	{"github.com/bwmarrin/discordgo", "adapters/discord"},
	{"github.com/gorilla/websocket", "adapters/**"},
	{"github.com/sashabaranov/go-openai", "agentcore/provider/chatcompletions agentcore/provider/responses agentcore/provider/embeddings agentcore/provider/transcription"},
	{"github.com/google/jsonschema-go", "agentcore/tool"},
	{"mvdan.cc/sh", "agentcore/tool/shell"},
	{"github.com/modelcontextprotocol/go-sdk", "agentcore/tool/mcp agentcore/tool/mcp/mcptest"},
	{"codeberg.org/readeck/go-readability", "agentcore/tool/web"},
	{"github.com/JohannesKaufmann/html-to-markdown", "agentcore/tool/web"},
	{"github.com/yuin/goldmark", "gateway/markdown adapters/**"},
	{"github.com/adhocore/gronx", "agentcore/schedule"},
	{"go.yaml.in/yaml", "config cmd/** agentcore/prompt"},
	{"github.com/spf13/cobra", "cmd/**"},
	{"github.com/mdp/qrterminal", "cmd/**"},
	{"github.com/prometheus", "cmd/** gateway/httpserver"},
}

// The most that each thing may have. What goes beyond the second figure of the
// house style fails here; the first is for the reader's eye.
const (
	maxFileLines     = 700
	maxFunctionLines = 80
	maxParameters    = 6
	maxFields        = 25
	maxMethods       = 8
)

// exceptions to the size budgets, each with its reason.
var exceptions = map[string]string{
	"gateway/store.go: methods of Store": "the sum of the ten nouns that the store serves; code takes the noun it needs",
}

func TestImports(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		i := slices.IndexFunc(imports, func(r struct{ packages, may string }) bool { return matches(f.dir, r.packages) })
		if i < 0 {
			t.Errorf("%s: no import rule for the package %s", f.path, f.dir)
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if inside, ok := strings.CutPrefix(imported, "parley/"); ok && !matches(inside, imports[i].may) {
				t.Errorf("%s: %s must not import %s; it may import: %s", f.path, f.dir, inside, imports[i].may)
			}
			if strings.HasPrefix(imported, "parley/") && isTestPackage(imported) && !isTestPackage(f.dir) {
				t.Errorf("%s: %s is for _test.go files only", f.path, imported)
			}
		}
	}
}

func TestLibraries(t *testing.T) {
	for _, f := range sources(t) {
		for _, spec := range f.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			for _, l := range libraries {
				if strings.HasPrefix(imported, l.module) && !matches(f.dir, l.packages) && !f.test {
					t.Errorf("%s: %s is for %s only", f.path, l.module, l.packages)
				}
			}
		}
	}
}

func TestDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s is exported and has no comment", f.at(d), name)
			}
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment; say what the package guarantees", dir)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, f := range sources(t) {
		limit := func(where, what string, got, most int) {
			if _, excepted := exceptions[where+": "+what]; got > most && !excepted {
				t.Errorf("%s: %s is %d, at most %d", where, what, got, most)
			}
		}
		limit(f.path, "lines", f.lines(f.ast.FileStart, f.ast.FileEnd), maxFileLines)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if !f.test {
					limit(f.path, "length of "+n.Name.Name, f.lines(n.Pos(), n.End()), maxFunctionLines)
				}
				limit(f.path, "parameters of "+n.Name.Name, n.Type.Params.NumFields(), maxParameters)
			case *ast.TypeSpec:
				switch u := n.Type.(type) {
				case *ast.StructType:
					limit(f.path, "fields of "+n.Name.Name, u.Fields.NumFields(), maxFields)
				case *ast.InterfaceType:
					limit(f.path, "methods of "+n.Name.Name, u.Methods.NumFields(), maxMethods)
				}
			}
			return true
		})
	}
}

// TestPlatformsAreData keeps platforms out of the core: there an account is data.
func TestPlatformsAreData(t *testing.T) {
	platform := regexp.MustCompile(`(?i)telegram|slack|discord`)
	for _, f := range sources(t) {
		if f.test || matches(f.dir, "adapters/** cmd/** config **test") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && platform.MatchString(id.Name) {
				t.Errorf("%s: the identifier %s names a platform", f.at(id), id.Name)
			}
			return true
		})
	}
}

// TestHabits forbids what makes tests slow or silent, and state that nobody owns.
func TestHabits(t *testing.T) {
	skip := []string{"Skip", "Skipf", "SkipNow"}
	for _, f := range sources(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, _ := n.X.(*ast.Ident)
				switch {
				case x == nil:
				case f.test && x.Name == "time" && n.Sel.Name == "Sleep":
					t.Errorf("%s: tests do not sleep; wait for what happens, or use testing/synctest", f.at(n))
				case f.test && slices.Contains(skip, n.Sel.Name):
					t.Errorf("%s: tests are not skipped", f.at(n))
				case !f.test && x.Name == "context" && n.Sel.Name == "TODO":
					t.Errorf("%s: context.TODO", f.at(n))
				}
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: no init functions; wire explicitly", f.at(n))
				}
			}
			return true
		})
	}
}

// undocumented lists the exported names of a declaration that have no comment. The
// methods of errors and of fmt.Stringer are explained by these.
func undocumented(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		known := d.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String"}, d.Name.Name)
		if d.Doc == nil && d.Name.IsExported() && !known && (d.Recv == nil || exportedReceiver(d.Recv)) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(recv *ast.FieldList) bool {
	typ := recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

// source is one parsed file of the module.
type source struct {
	path string
	dir  string
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func (f source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

func (f source) lines(from, to token.Pos) int {
	return f.fset.Position(to).Line - f.fset.Position(from).Line + 1
}

// sources parses every Go file, whatever its build tags.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(p) != ".go":
			return nil
		}
		p = filepath.ToSlash(p)
		parsed, err := parser.ParseFile(fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, source{p, path.Dir(p), strings.HasSuffix(p, "_test.go"), parsed, fset})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isTestPackage: by convention their name, or that of a folder around them, ends
// with "test".
func isTestPackage(dir string) bool {
	return slices.ContainsFunc(strings.Split(dir, "/"), func(name string) bool { return strings.HasSuffix(name, "test") })
}

// matches says whether a package is in a list of patterns.
func matches(dir, patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool {
		below, deep := strings.CutSuffix(p, "**")
		switch {
		case p == "**test":
			return isTestPackage(dir)
		case deep:
			return strings.HasPrefix(dir+"/", below)
		}
		ok, _ := path.Match(p, dir)
		return ok
	})
}
