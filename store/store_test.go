package store_test

import (
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
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("parley/store.(*Private).watchOver"))
}
