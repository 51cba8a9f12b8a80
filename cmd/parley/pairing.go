package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parley/gateway/chat"
	"parley/store/record"
)

func (a *app) pairingCommand() *cobra.Command {
	var asJSON bool
	list := jsonFlag(&cobra.Command{
		Use:   "list",
		Short: "List who may talk, and who asks to",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.pairingList(c.Context(), asJSON) },
	}, &asJSON)
	approve := &cobra.Command{
		Use:   "approve CODE",
		Short: "Let somebody in who asked",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return a.pairingApprove(c.Context(), args[0]) },
	}
	revoke := &cobra.Command{
		Use:   "revoke PLATFORM:ID",
		Short: "Forget a person, who is then a stranger again",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return a.pairingRevoke(c.Context(), chat.Person(args[0])) },
	}
	return group("pairing", "Decide who may talk to the bot", list, approve, revoke)
}

func (a *app) pairingList(ctx context.Context, asJSON bool) error {
	type request struct {
		Code    string `json:"code"`
		Person  string `json:"person"`
		Name    string `json:"name"`
		Expires string `json:"expires_at"`
	}
	type member struct {
		Person string `json:"person"`
		Name   string `json:"name"`
		Role   string `json:"role"`
	}
	return a.withDatabase(ctx, func(db *database) error {
		open, err := db.Pairings(ctx)
		if err != nil {
			return err
		}
		known, err := db.Members(ctx)
		if err != nil {
			return err
		}
		requests, members := []request{}, []member{}
		rows := [][]string{{"PERSON", "NAME", "ROLE", "CODE"}}
		for _, p := range open {
			requests = append(requests, request{p.Code, string(p.Person), p.Name, timestamp(p.ExpiresAt)})
			rows = append(rows, []string{string(p.Person), p.Name, "asks", p.Code})
		}
		for _, m := range known {
			members = append(members, member{string(m.ID), m.Name, string(m.Role)})
			rows = append(rows, []string{string(m.ID), m.Name, string(m.Role), ""})
		}
		if asJSON {
			return printJSON(a.stdout, struct {
				Requests []request `json:"requests"`
				Members  []member  `json:"members"`
			}{requests, members})
		}
		return printTable(a.stdout, rows)
	})
}

// pairingApprove lets a person in. What they wrote meanwhile is put where the
// daemon finds it as open work: this process is a replica for a moment, and gives
// the conversations up again.
func (a *app) pairingApprove(ctx context.Context, code string) error {
	return a.withDatabase(ctx, func(db *database) error {
		p, ok, err := db.DecidePairing(ctx, strings.ToUpper(code), record.PairingAllowed)
		switch {
		case errors.Is(err, record.ErrNotFound):
			return fmt.Errorf("there is no request %s; see parley pairing list", oneLine(code, 20))
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("the request of %s is %s", p.Person, p.State)
		}
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		replica, err := db.Register(ctx, host, func(error) { cancel() })
		if err != nil {
			return err
		}
		fences, err := db.ReceiveHeld(ctx, replica, p.Person)
		for _, f := range fences {
			_, releaseErr := db.Release(ctx, f, true)
			err = errors.Join(err, releaseErr)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s (%s) may talk to the bot.\n", p.Person, oneLine(p.Name, 60))
		return err
	})
}

func (a *app) pairingRevoke(ctx context.Context, p chat.Person) error {
	return a.withDatabase(ctx, func(db *database) error {
		err := db.RemoveMember(ctx, p)
		if errors.Is(err, record.ErrNotFound) {
			return fmt.Errorf("nobody is known as %s; see parley pairing list, and access.allow and access.admins in the configuration", oneLine(string(p), 60))
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s is a stranger now. If access.allow or access.admins lists them, remove them there too.\n", p)
		return err
	})
}
