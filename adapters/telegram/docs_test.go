package telegram

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What docs/telegram.md explains is what is said.
func TestDocsKnowTheMessages(t *testing.T) {
	page, err := os.ReadFile("../../docs/telegram.md")
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for _, pattern := range []string{"*.go", "../../gateway/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			said.Write(b)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Errorf("the page explains %d messages", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(said.String(), row[1]) {
			t.Errorf("nobody says %q", row[1])
		}
	}
}
