package store_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"parley/agentcore"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/store"
)

var (
	_ gateway.Store      = (*store.DB)(nil)
	_ agentcore.Notes    = (*store.DB)(nil)
	_ agentcore.Searcher = (*store.DB)(nil)
	_ agentcore.Todos    = (*store.DB)(nil)
	_ chat.Timeline      = store.Timeline{}
	_ chat.Directory     = store.Directory{}
)

// Nothing that the store starts may outlive it. The shared server's own watch
// lives as long as the test binary.
func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		if err := helper(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("parley/store.(*Private).watchOver"))
}
