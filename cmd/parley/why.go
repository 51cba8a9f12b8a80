package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/markdown"
	"parley/store/record"
)

func (a *app) whyCommand() *cobra.Command {
	var asJSON bool
	var account string
	c := jsonFlag(&cobra.Command{
		Use:   "why MESSAGE",
		Short: "Say why a message was or was not answered",
		Long:  "Say what became of a message, given by the platform's id of it (the last part of its link).",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.why(c.Context(), chat.AccountID(account), chat.MessageID(args[0]), asJSON)
		},
	}, &asJSON)
	c.Flags().StringVar(&account, "account", "", "only messages to this account, as `PLATFORM/NAME`")
	return c
}

func (a *app) why(ctx context.Context, account chat.AccountID, message chat.MessageID, asJSON bool) error {
	return a.withDatabase(ctx, func(db *database) error {
		w, err := db.Explain(ctx, account, "", message)
		switch {
		case errors.Is(err, record.ErrNotFound):
			return fmt.Errorf("no message %s came in; in a group, chatter that is not for the bot leaves no trace", oneLine(string(message), 60))
		case err != nil:
			return err
		case asJSON:
			return printJSON(a.stdout, explained(w))
		}
		_, err = fmt.Fprintln(a.stdout, plain(markdown.Plain(gateway.Explain(w))))
		return err
	})
}

// explanation is a message's fate as JSON.
type explanation struct {
	Account    string             `json:"account"`
	Key        string             `json:"event_key"`
	State      string             `json:"state"`
	Reason     string             `json:"reason"`
	ReceivedAt string             `json:"received_at"`
	Turn       *explainedTurn     `json:"turn,omitempty"`
	Refusals   []explainedRefusal `json:"refusals,omitempty"`
	Deliveries []explainedAnswer  `json:"deliveries,omitempty"`
}

type explainedTurn struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Cause     string `json:"cause,omitempty"`
	Reference string `json:"reference,omitempty"`
}

type explainedRefusal struct {
	By       string `json:"by,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Asked    string `json:"asked"`
	Reason   string `json:"reason"`
	Decision string `json:"decision,omitempty"`
	Decider  string `json:"decided_by,omitempty"`
}

type explainedAnswer struct {
	Kind    string `json:"kind"`
	Part    int    `json:"part"`
	State   string `json:"state"`
	Message string `json:"platform_message_id,omitempty"`
	Error   string `json:"error,omitempty"`
}

func explained(w record.Why) explanation {
	e := explanation{
		Account: string(w.Item.Account), Key: string(w.Item.Key), State: string(w.Item.State), Reason: w.Item.Reason,
		ReceivedAt: timestamp(w.Item.ReceivedAt),
	}
	if t := w.Turn; t != nil {
		e.Turn = &explainedTurn{ID: string(t.ID), State: string(t.State), Cause: t.Cause, Reference: t.Reference}
	}
	for _, r := range w.Refusals {
		e.Refusals = append(e.Refusals, explainedRefusal{
			By: string(r.By), Tool: r.Tool, Asked: gateway.Asked(r), Reason: r.Reason, Decision: string(r.Decision), Decider: string(r.Decider),
		})
	}
	for _, d := range w.Deliveries {
		e.Deliveries = append(e.Deliveries, explainedAnswer{Kind: string(d.Kind), Part: d.Part, State: string(d.State), Message: string(d.Message), Error: d.Error})
	}
	return e
}
