package provider

import (
	"context"
	"errors"
	"sync"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// endpoint is one provider: the client and its gate, or why it is off.
type endpoint struct {
	make func(Config) (llm.Provider, error)
	gate *gate
	off  error
	// renewing is held while the key is read again.
	renewing chan struct{}

	mu     sync.Mutex
	cfg    Config
	client llm.Provider
}

func newEndpoint(mk func(Config) (llm.Provider, error), c Config) (*endpoint, error) {
	client, err := mk(c)
	if err != nil {
		return nil, err
	}
	return &endpoint{make: mk, renewing: make(chan struct{}, 1), cfg: c, client: client}, nil
}

// current is the client and the key that it uses.
func (e *endpoint) current() (llm.Provider, secret.String) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client, e.cfg.APIKey
}

// renew reads a key that was refused again where it comes from. It reports whether
// there is another one now; several calls that were refused at once read it once.
func (e *endpoint) renew(ctx context.Context, refused secret.String) (bool, error) {
	select {
	case e.renewing <- struct{}{}:
		defer func() { <-e.renewing }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if _, key := e.current(); key != refused {
		return true, nil
	}
	key, err := refused.Again(ctx)
	switch {
	case errors.Is(err, secret.ErrFixed):
		return false, nil
	case err != nil:
		return false, err
	case key == refused || key.Empty():
		return false, nil
	}
	c := e.cfg // only written below
	c.APIKey = key
	client, err := e.make(c)
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	old := e.client
	e.cfg, e.client = c, client
	e.mu.Unlock()
	closeClient(old)
	return true, nil
}

// close gives up the idle connections.
func (e *endpoint) close() {
	client, _ := e.current()
	closeClient(client)
}

func closeClient(p llm.Provider) {
	if c, ok := p.(interface{ Close() }); ok {
		c.Close()
	}
}
