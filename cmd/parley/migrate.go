package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/store"
)

func (a *app) migrateCommand() *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date (serve does so too)",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.migrate(c.Context(), asJSON) },
	}, &asJSON)
}

func (a *app) migrate(ctx context.Context, asJSON bool) error {
	cfg, log, err := a.prepare()
	if err != nil {
		return err
	}
	url, stop, err := databaseURL(ctx, cfg, log)
	if err != nil {
		return err
	}
	from, to, err := store.Migrate(ctx, url, log)
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.stdout, struct {
			From int64 `json:"from"`
			To   int64 `json:"to"`
		}{from, to})
	}
	if from == to {
		_, err = fmt.Fprintf(a.stdout, "The schema is up to date (version %d).\n", to)
	} else {
		_, err = fmt.Fprintf(a.stdout, "The schema went from version %d to %d.\n", from, to)
	}
	return err
}
