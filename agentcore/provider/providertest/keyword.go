package providertest

import (
	"fmt"
	"strconv"
	"strings"
)

// keyword answers by Keywords, which needs to know how often a text was asked.
func (s *Server) keyword(req Request) Answer {
	times := 0
	s.mu.Lock()
	for _, x := range s.exchanges[:req.N] {
		if x.Refusal == "" && x.Request.LastUser() == req.LastUser() && x.Request.Last().Role == "user" {
			times++
		}
	}
	s.mu.Unlock()
	return Keywords(req, times)
}

// Keywords answers by the first line of what the user said last, so that scripts
// can steer the model by what they write; times is how often that was asked before.
//
//	say TEXT             TEXT
//	words N              N words
//	slow N               N words, ten a second
//	call NAME {JSON}     a tool call; several with " && " between them are parallel
//	think TEXT           reasoning TEXT, then "done thinking"
//	fail N STATUS        the first N times an error of that status, then "recovered"
//	silent, cut, broken  a few words, then nothing more, a cut connection, an error
//	anything else        "echo: " and the message
//
// Tool results are answered with "results: " and the results; a request without
// tools whose system prompt speaks of a summary, with "SUMMARY of N messages".
func Keywords(req Request, times int) Answer {
	if results := req.Results(); len(results) > 0 {
		return Answer{Text: "results: " + strings.Join(results, " | ")}
	}
	if len(req.Tools) == 0 && strings.Contains(strings.ToLower(req.System()), "summar") {
		return Answer{Text: fmt.Sprintf("SUMMARY of %d messages", len(req.Messages))}
	}
	text := req.Said()
	line, _, _ := strings.Cut(text, "\n")
	word, rest, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(strings.Fields(rest + " 0")[0])
	switch strings.ToLower(word) {
	case "say":
		return Answer{Text: rest}
	case "words":
		return Answer{Text: Words(n)}
	case "slow":
		return Answer{Text: Words(n), Rate: 10}
	case "call":
		if calls := parseCalls(req, line); calls != nil {
			return Answer{Calls: calls}
		}
	case "think":
		return Answer{Reasoning: rest, Text: "done thinking"}
	case "fail":
		if times < n {
			status, _ := strconv.Atoi(strings.TrimSpace(rest[len(strconv.Itoa(n)):]))
			return Answer{Status: max(status, 400)}
		}
		return Answer{Text: "recovered"}
	case "silent":
		return Answer{Text: "and then there was", End: EndSilent}
	case "cut":
		return Answer{Text: "and then there was", End: EndCut}
	case "broken":
		return Answer{Text: "and then there was", End: EndError}
	}
	return Answer{Text: "echo: " + text}
}

// parseCalls reads `call a {…} && call b {…}`; nil if a tool may not be called.
func parseCalls(req Request, line string) (out []Call) {
	for _, one := range strings.Split(line, " && ") {
		name, args, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(one, "call ")), " ")
		if !req.HasTool(name) {
			return nil
		}
		out = append(out, Call{Name: name, Arguments: args})
	}
	return out
}
