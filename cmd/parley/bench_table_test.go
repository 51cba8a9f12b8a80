//go:build bench

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
)

// The moments between which people wait.
func wasHandedOut(m *benchMessage) time.Time  { return m.handedOut }
func wasAsked(m *benchMessage) time.Time      { return m.asked }
func hadFirstToken(m *benchMessage) time.Time { return m.firstToken }
func hadLastToken(m *benchMessage) time.Time  { return m.lastToken }
func hadFirstText(m *benchMessage) time.Time  { return m.firstText }
func hadFinalText(m *benchMessage) time.Time  { return m.finalText }

// String is the table.
func (b *benchTable) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d chats, %d messages each, the next one when the answer is complete, begun over %s; the model: %s to the first token, %.0f tokens a second, %d tokens;\n"+
		"one account, access for everybody, everything else as by default; PostgreSQL with fsync\n\n",
		b.platform, benchActive, benchEach, benchSpread, benchModel.first, benchModel.rate, benchModel.tokens)
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		if !b.whole {
			cells = cells[:min(len(cells), 3)]
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintln(tabbed(cells)...), "\n"))
	}
	row("", "target", "daemon", "1,000 known", "bare relay")
	b.delays(row, "event handed out → model request", [2]string{"≤ 5 ms", "≤ 30 ms"}, wasHandedOut, wasAsked)
	b.delays(row, "first token → first visible text", [2]string{"≤ 10 ms", ""}, hadFirstToken, hadFirstText)
	b.delays(row, "last token → final text visible", [2]string{"≤ 10 ms", ""}, hadLastToken, hadFinalText)
	row("CPU a message", "≤ 6 ms", perMessage(b.daemon, b.daemon.reading.cpu), perMessage(b.known, b.known.reading.cpu), perMessage(b.floor, b.floor.reading.cpu))
	row("CPU a message, PostgreSQL", "", perMessage(b.daemon, b.daemon.reading.pg), perMessage(b.known, b.known.reading.pg), "")
	row("calls to the platform a message", "", ratio(b.daemon.calls, b.daemon), ratio(b.known.calls, b.known), ratio(b.floor.calls, b.floor))
	row("lost, doubled", "0, 0", counts(b.daemon), counts(b.known), counts(b.floor))
	row("cores used: by it, PostgreSQL, the fakes, others", "", cores(b.daemon.reading), cores(b.known.reading), cores(b.floor.reading))
	row("memory at the most (RSS, PSS)", "", b.daemon.reading.peak, b.known.reading.peak, b.floor.reading.peak)
	_ = w.Flush()
	w = tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	if b.whole {
		row("\nwith 1,000 known chats, 200 active: memory", "≤ 80 MB", b.known.reading.peak)
		row(fmt.Sprintf("with 1,000 active at the same time, the model at %.0f tokens a second: memory", benchSlow.rate), "≤ 150 MB", b.all.reading.peak)
		row("the same: lost, doubled", "0, 0", counts(b.all))
	}
	row("with the platform's limits enforced: lost, doubled", "0, 0", counts(b.limited)+
		fmt.Sprintf(" (in %s; %d calls, %d of them refused; nothing else visible %s later)", b.limited.reading.took.Round(100*time.Millisecond), b.limited.calls, b.refused,
			b.limited.cleared.Round(100*time.Millisecond)))
	_ = w.Flush()
	return out.String()
}

// delays adds the rows of the median and the 99th percentile.
func (b *benchTable) delays(row func(...any), name string, target [2]string, from, to func(*benchMessage) time.Time) {
	for i, fraction := range []float64{0.5, 0.99} {
		cells := []any{name + []string{", median", ", p99"}[i], target[i]}
		for _, r := range []benchResult{b.daemon, b.known, b.floor} {
			cells = append(cells, millis(delays(r.messages, from, to).at(fraction)))
		}
		row(cells...)
	}
}

func tabbed(cells []any) []any {
	out := make([]any, 0, 2*len(cells))
	for i, c := range cells {
		if i > 0 {
			out = append(out, "\t")
		}
		out = append(out, c)
	}
	return out
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func perMessage(r benchResult, d time.Duration) string {
	return millis(d / time.Duration(max(1, len(r.messages))))
}

func ratio(n int, r benchResult) string {
	return fmt.Sprintf("%.1f", float64(n)/float64(max(1, len(r.messages))))
}

func counts(r benchResult) string {
	return fmt.Sprintf("%d, %d of %d", r.tally.lost, r.tally.doubled, len(r.messages))
}

func cores(r benchReading) string {
	of := func(d time.Duration) float64 { return d.Seconds() / (r.took + time.Second).Seconds() }
	return fmt.Sprintf("%.2f, %.2f, %.2f, %.2f", of(r.cpu), of(r.pg), of(r.fakes), of(r.others))
}

// String is in MB.
func (m benchMemory) String() string {
	return fmt.Sprintf("%.0f, %.0f MB", float64(m.rss)/1024, float64(m.pss)/1024)
}
