package main

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"parley/config"
	"parley/store"
)

// database is the open store, with the private server behind it if there is no
// URL.
type database struct {
	*store.DB
	stopServer func() error
	log        *zap.Logger
}

// openDatabase opens the store, waiting for a server that cannot be reached yet.
func openDatabase(ctx context.Context, c *config.Config, log *zap.Logger) (*database, error) {
	url, stop, err := databaseURL(ctx, c, log)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, store.OpenConfig{URL: url}, log)
	if err != nil {
		_ = stop()
		return nil, err
	}
	return &database{DB: db, stopServer: stop, log: log}, nil
}

// Close closes the store and gives the private server up.
func (d *database) Close() {
	d.DB.Close()
	if err := d.stopServer(); err != nil {
		d.log.Error("stop the private PostgreSQL", zap.Error(err))
	}
}

// databaseURL is the configured URL, or that of the private server, which is
// started, and started again if it dies, until stop is called.
func databaseURL(ctx context.Context, c *config.Config, log *zap.Logger) (url string, stop func() error, err error) {
	if c.Database.URL != "" {
		return c.Database.URL, func() error { return nil }, nil
	}
	first, err := store.StartPrivate(ctx, store.PrivateConfig{DataDir: c.DataDir}, log)
	if err != nil {
		return "", nil, err
	}
	k := &keeper{config: store.PrivateConfig{DataDir: c.DataDir}, server: first, log: log}
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.watching.Go(k.keep)
	return first.URL(), k.stop, nil
}

// keeper starts a private server again when it has died; the pool then finds it at
// the same address.
type keeper struct {
	config   store.PrivateConfig
	server   *store.Private // owned by keep until it has ended
	log      *zap.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	watching sync.WaitGroup
}

func (k *keeper) keep() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.server.Done():
		}
		if err := k.server.Stop(); err != nil {
			k.log.Error("private PostgreSQL", zap.Error(err))
		}
		next, err := store.StartPrivate(k.ctx, k.config, k.log)
		for wait := time.Second; err != nil; wait = min(2*wait, 30*time.Second) {
			k.log.Error("the private PostgreSQL does not start again", zap.Error(err))
			select {
			case <-k.ctx.Done():
				return
			case <-time.After(wait):
			}
			next, err = store.StartPrivate(k.ctx, k.config, k.log)
		}
		k.server = next
	}
}

func (k *keeper) stop() error {
	k.cancel()
	k.watching.Wait()
	return k.server.Stop()
}
