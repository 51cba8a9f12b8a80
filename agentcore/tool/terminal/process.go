package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
	"parley/store/record"
)

const (
	// maxProcesses may run in the background in a conversation, allProcesses in all.
	maxProcesses = 5
	allProcesses = 40
	// maxListed are listed of a conversation, ended ones included.
	maxListed = 20
	// maxLife is how long one may run.
	maxLife = 4 * time.Hour
	// firstLook is how long the start of one is watched for an early end.
	firstLook = 400 * time.Millisecond
	// readLimit is bytes that one reading returns.
	readLimit = 16 << 10
	maxWait   = 60 * time.Second
)

// processes is what runs in the background. The zero value is ready.
type processes struct {
	mu      sync.Mutex
	all     map[record.ConversationID][]*process
	closed  bool
	watcher *watcher
	ends    sync.WaitGroup
}

// process is one command in the background.
type process struct {
	number   int
	id, line string
	root     record.SessionID
	begun    time.Time
	stdin    io.WriteCloser
	log      *processLog
	stop     context.CancelFunc
	ended    chan struct{}
	end      ending // once ended is closed
}

// watch starts the watcher with the first command.
func (p *processes) watch(launcher, mark string) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("parley is ending")
	}
	if p.watcher == nil && launcher != "" {
		p.watcher, err = startWatcher(launcher, mark)
	}
	return err
}

// begin starts a command in the background.
func (t *Terminal) begin(ctx context.Context, c tool.Call, line string, cmd *exec.Cmd, mark string) tool.Result {
	t.StopOthers(c.Conversation, c.Root)
	t.processes.mu.Lock()
	all := 0
	for _, ps := range t.processes.all {
		all += len(slices.DeleteFunc(slices.Clone(ps), (*process).over))
	}
	mine := slices.DeleteFunc(slices.Clone(t.processes.all[c.Conversation]), (*process).over)
	t.processes.mu.Unlock()
	if len(mine) >= maxProcesses || all >= allProcesses {
		return tool.Failure("Too many commands run in the background (%d here). Kill one first.", len(mine))
	}
	p, err := t.spawn(cmd, mark, c, line)
	if err != nil {
		return tool.Failure("The command could not be started: %v", err)
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
		p.stop()
		<-p.ended
	}
	return p.report(fmt.Sprintf("Started in the background as %s. Use the tool process to read, write or kill it; it ends with this session, with /stop, or after %s", p.id, maxLife))
}

// spawn starts a process and whoever waits for it.
func (t *Terminal) spawn(cmd *exec.Cmd, mark string, c tool.Call, line string) (*process, error) {
	log, err := newProcessLog(cmd.Dir)
	if err != nil {
		return nil, err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		log.close()
		return nil, err
	}
	defer in.Close()
	cmd.Stdin = in
	begun, err := start(cmd, mark, log)
	if err != nil {
		stdin.Close()
		log.close()
		return nil, err
	}
	life, stop := context.WithTimeout(context.Background(), maxLife)
	p := &process{line: line, root: c.Root, begun: t.now(), stdin: stdin, log: log, stop: stop, ended: make(chan struct{})}
	t.processes.mu.Lock()
	defer t.processes.mu.Unlock()
	if t.processes.all == nil {
		t.processes.all = map[record.ConversationID][]*process{}
	}
	others := t.processes.all[c.Conversation]
	if len(others) > 0 {
		p.number = others[len(others)-1].number
	}
	p.number++
	p.id = fmt.Sprintf("p%d", p.number)
	if len(others) >= maxListed {
		if i := slices.IndexFunc(others, (*process).over); i >= 0 {
			others = slices.Delete(others, i, i+1)
		}
	}
	t.processes.all[c.Conversation] = append(others, p)
	if t.processes.closed {
		stop()
	}
	t.processes.ends.Go(func() {
		defer close(p.ended)
		defer stop()
		p.end = begun.wait(life)
		_ = stdin.Close()
		log.close()
	})
	return p, nil
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// state is how a process is, in a few words.
func (p *process) state(now time.Time) string {
	switch {
	case !p.over():
		return "running for " + now.Sub(p.begun).Round(time.Second).String()
	case p.end.cut:
		return "was ended"
	case p.end.exit < 0:
		return "ended by a signal: " + p.end.signal
	}
	return fmt.Sprintf("ended, exit code %d", p.end.exit)
}

// report is what the process printed since the last time.
func (p *process) report(note string) tool.Result {
	text, left := p.log.next()
	if p.over() {
		note = fmt.Sprintf("%s %s", p.id, p.state(time.Time{}))
	}
	if left > 0 {
		note += fmt.Sprintf("; %d more bytes are there to read", left)
	}
	if text == "" {
		note = "no new output; " + note
	}
	return tool.Result{Text: "[" + note + "; all of its output is in " + p.log.name + "]", Untrusted: strings.TrimRight(text, "\n"), Failed: p.over() && p.end.exit != 0 && !p.end.cut}
}

// processInput is what the model fills in.
type processInput struct {
	Action string `json:"action" jsonschema:"what to do" enum:"list,read,write,kill"`
	ID     string `json:"id,omitempty" jsonschema:"the process, such as p1; for all actions but list"`
	Text   string `json:"text,omitempty" jsonschema:"for write: what it is given on its input; end a line with a newline"`
	Wait   int    `json:"wait,omitempty" jsonschema:"for read and write: seconds to wait for new output, at most 60"`
}

func (t *Terminal) processTool() (tool.Tool, error) {
	spec := tool.Spec{ToolSpec: llm.ToolSpec{
		Name:        "process",
		Description: "Look after the commands that terminal started with background: list them, read what one has printed since the last time, write to its input, or kill it.",
	}, Needs: tool.Exec, Waits: true}
	tl, err := tool.NewJudged(spec, t.judgeProcess, t.process)
	if err != nil {
		return nil, err
	}
	return stoppable{tl.(tool.Judged), t}, nil
}

// stoppable lets the agent end what a conversation left running.
type stoppable struct {
	tool.Judged
	t *Terminal
}

var _ tool.Stopper = stoppable{}

// Stop implements tool.Stopper.
func (s stoppable) Stop(c record.ConversationID) int { return s.t.Stop(c) }

// judgeProcess: what is written to a program may be a command, so it is asked for, and
// what no command line may say no input may either.
func (t *Terminal) judgeProcess(c tool.Call, in processInput) tool.Judgement {
	if in.Action != "write" {
		return tool.Judgement{}
	}
	if j := t.judge(c, input{Command: in.Text}); j.Danger == tool.Forbidden {
		return j
	}
	return tool.Judgement{Needs: tool.Exec, Danger: tool.Opaque, Reason: "it gives a running program its input"}
}

func (t *Terminal) process(ctx context.Context, c tool.Call, in processInput) (tool.Result, error) {
	t.StopOthers(c.Conversation, c.Root)
	ps := t.of(c.Conversation)
	if in.Action == "list" {
		return tool.Result{Text: t.list(ps)}, nil
	}
	i := slices.IndexFunc(ps, func(p *process) bool { return p.id == in.ID })
	if i < 0 {
		return tool.Failure("There is no process %q.\n%s", in.ID, t.list(ps)), nil
	}
	p := ps[i]
	switch in.Action {
	case "kill":
		p.stop()
		<-p.ended
	case "write":
		if _, err := io.WriteString(p.stdin, in.Text); err != nil {
			return tool.Failure("%s takes no input any more (%s).", p.id, p.state(t.now())), nil
		}
	}
	p.await(ctx, min(time.Duration(in.Wait)*time.Second, maxWait))
	return p.report(p.id + " " + p.state(t.now())), nil
}

// await waits for new output, an end, or the end of the wait.
func (p *process) await(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.log.news():
	case <-p.ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (t *Terminal) list(ps []*process) string {
	if len(ps) == 0 {
		return "Nothing runs in the background."
	}
	var b strings.Builder
	for _, p := range ps {
		fmt.Fprintf(&b, "%s: %s: %s\n", p.id, p.state(t.now()), tool.Clip(p.line, 200))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (t *Terminal) of(c record.ConversationID) []*process {
	t.processes.mu.Lock()
	defer t.processes.mu.Unlock()
	return slices.Clone(t.processes.all[c])
}

// Stop ends all that a conversation runs in the background, and says how many there
// were. It returns when they are gone.
func (t *Terminal) Stop(c record.ConversationID) int {
	return t.stop(c, func(*process) bool { return true })
}

// StopOthers ends what runs in the background of a conversation for a session that
// is not its current one.
func (t *Terminal) StopOthers(c record.ConversationID, current record.SessionID) int {
	return t.stop(c, func(p *process) bool { return p.root != current })
}

func (t *Terminal) stop(c record.ConversationID, which func(*process) bool) int {
	t.processes.mu.Lock()
	var ending, kept []*process
	for _, p := range t.processes.all[c] {
		if which(p) {
			ending = append(ending, p)
		} else {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		delete(t.processes.all, c)
	} else {
		t.processes.all[c] = kept
	}
	t.processes.mu.Unlock()
	n := 0
	for _, p := range ending {
		if !p.over() {
			n++
		}
		p.stop()
	}
	for _, p := range ending {
		<-p.ended
	}
	return n
}

// Close ends everything that runs in the background. No command is started after it.
func (t *Terminal) Close() {
	t.processes.mu.Lock()
	t.processes.closed = true
	for _, ps := range t.processes.all {
		for _, p := range ps {
			p.stop()
		}
	}
	w := t.processes.watcher
	t.processes.watcher = nil
	t.processes.mu.Unlock()
	t.processes.ends.Wait()
	if w != nil {
		w.close()
	}
}
