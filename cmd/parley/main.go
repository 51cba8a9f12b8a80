// Command parley puts one LLM agent behind chats: the daemon, and the commands to
// look after it. Only main exits the process; every command is a function of its
// arguments, environment and streams, so that tests run the same program.
package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"parley/agentcore/tool/terminal"
	_ "time/tzdata" // zones, where the machine has none
)

func main() {
	if code, ran := terminal.Helper(os.Args[1:]); ran {
		os.Exit(code)
	}
	interrupts := &interrupts{}
	os.Exit(withSignals(interrupts, func(ctx, hurry context.Context) int {
		tuning, end := context.WithCancel(ctx)
		var tuner sync.WaitGroup
		tuner.Go(func() { tuneCollector(tuning) })
		defer tuner.Wait()
		defer end()
		return run(ctx, hurry, process{
			args: os.Args[1:], env: os.LookupEnv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, interrupts: interrupts,
		})
	}))
}

// withSignals gives f a context that ends with the first signal to stop, and one
// that ends with the second. Interrupts that somebody takes for themselves do not
// count.
func withSignals(i *interrupts, f func(ctx, hurry context.Context) int) int {
	ctx, stop := context.WithCancel(context.Background())
	hurry, now := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for ends := []context.CancelFunc{stop, now}; len(ends) > 0; {
			select {
			case s := <-signals:
				if s == os.Interrupt && i.taken() {
					continue
				}
				ends[0]()
				ends = ends[1:]
			case <-done:
				return
			}
		}
	}()
	defer func() { signal.Stop(signals); close(done); stop(); now() }()
	return f(ctx, hurry)
}

// interrupts is who is asked first when Ctrl-C is pressed. The zero value asks
// nobody.
type interrupts struct{ take atomic.Pointer[func() bool] }

// to sets who is asked; take says whether the key was meant for it. The returned
// function ends that.
func (i *interrupts) to(take func() bool) (end func()) {
	if i == nil {
		return func() {}
	}
	i.take.Store(&take)
	return func() { i.take.Store(nil) }
}

func (i *interrupts) taken() bool {
	take := i.take.Load()
	return take != nil && (*take)()
}
