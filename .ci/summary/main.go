// Command summary reads `go test -json` and prints what `go test` itself would: a
// line for each package as it ends, and the output of what failed. It fails if a
// test failed, and also if one was skipped, which go test takes for a success.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

func main() {
	output := map[[2]string]*strings.Builder{}
	passed, failed, skipped, broken := 0, 0, 0, false
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			// What is not JSON is the toolchain's own word, a build error for one.
			os.Stdout.Write(line)
			continue
		}
		key := [2]string{e.Package, e.Test}
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		switch e.Action {
		case "output", "build-output":
			output[key].WriteString(e.Output)
			continue
		case "pass":
			passed += tests(e)
		case "fail", "build-fail":
			failed += tests(e)
			broken = true
		case "skip":
			skipped += tests(e)
		default:
			continue
		}
		if e.Test == "" && e.Action == "fail" {
			unfinished(output, e.Package)
		}
		if e.Test == "" || e.Action != "pass" {
			fmt.Print(strings.TrimPrefix(output[key].String(), "PASS\n"))
		}
		delete(output, key)
	}
	fmt.Printf("%d tests passed, %d failed, %d skipped\n", passed, failed, skipped)
	if broken || skipped > 0 {
		os.Exit(1)
	}
}

// unfinished prints the end of what the tests said that had not ended when their
// package did: one of them was why, by a panic or by waiting for ever.
func unfinished(output map[[2]string]*strings.Builder, of string) {
	const most = 64 << 10
	for key, said := range output {
		if key[0] == of && key[1] != "" {
			text := said.String()
			fmt.Printf("=== %s had not ended\n%s", key[1], text[max(0, len(text)-most):])
		}
	}
}

// tests is 1 for an event of a test and 0 for one of a package.
func tests(e event) int {
	if e.Test == "" {
		return 0
	}
	return 1
}
