package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	lib "github.com/slack-go/slack"

	"parley/gateway/chat"
)

// effect says what it means that a call may have been carried out.
type effect int

const (
	repeated effect = iota // it can be made again: reactions, reading
	changes                // so can this, and it counts among edits
	creates                // a second time makes a second message (DEL-004)
)

// word is what the Web API answered instead of "ok": true; empty for every other
// error. A 200 may hold one too (STR-027).
func word(err error) string {
	var e lib.SlackErrorResponse
	if errors.As(err, &e) {
		return e.Err
	}
	return ""
}

// says tests what the Web API answered.
func says(err error, words ...string) bool {
	w := word(err)
	return w != "" && slices.Contains(words, w)
}

// What Slack says about things that a second try can or cannot mend.
var (
	gone = []string{
		"channel_not_found", "is_archived", "not_in_channel", "message_not_found", "thread_not_found", "cant_update_message", "cant_delete_message",
		"edit_window_closed", "user_not_found", "user_disabled", "user_not_in_channel", "restricted_action", "restricted_action_read_only_channel",
		"restricted_action_thread_locked", "no_permission", "is_inactive", "message_not_owned_by_app",
	}
	blocksRefused = []string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"}
	notStreaming  = []string{"message_not_in_streaming_state", "streaming_state_conflict"}
	rateLimited   = []string{"ratelimited", "rate_limited"}
	unknownEnd    = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout"}
	refusedTokens = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type", "app_uninstalled",
	}
)

// deliveryError turns the error of a call into one of those that chat.Adapter
// names.
func deliveryError(err error, e effect) error {
	var limited *lib.RateLimitedError
	var unsent *unsentError
	var status lib.StatusCodeError
	switch w := word(err); {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return &chat.RateLimitError{RetryAfter: limited.RetryAfter, Edits: e == changes}
	case slices.Contains(rateLimited, w):
		return &chat.RateLimitError{RetryAfter: defaultRetry, Edits: e == changes}
	case slices.Contains(gone, w):
		return fmt.Errorf("%w: slack: %s", chat.ErrGone, w)
	case slices.Contains(refusedTokens, w), w == "missing_scope":
		return fmt.Errorf("slack: %s; parley doctor says what to do", explain(err))
	case w != "" && !slices.Contains(unknownEnd, w):
		return &chat.RejectedError{Reason: explain(err)}
	case errors.As(err, &unsent), errors.As(err, &status) && status.Code < 500:
		return err
	case e == creates:
		return fmt.Errorf("%w: %w", chat.ErrAmbiguous, err)
	}
	return err
}

// explain puts a refusal into words, with the scope that it is about.
func explain(err error) string {
	var e lib.SlackErrorResponse
	if !errors.As(err, &e) {
		return err.Error()
	}
	s := e.Err
	if e.Needed != "" {
		s += " (needs " + e.Needed + ")"
	}
	if list := e.ResponseMetadata.Messages; len(list) > 0 {
		s += ": " + strings.Join(list, "; ")
	}
	return s
}

// credential is the end of an adapter whose token does not work; nil for any other
// error. app says that it is about the app-level token.
func (a *Adapter) credential(err error, app bool) error {
	if err == nil {
		return nil
	}
	bad := says(err, refusedTokens...)
	if !bad && (!app || !says(err, "missing_scope")) {
		return nil
	}
	c := &chat.CredentialError{Account: a.account, Reason: "Slack refuses the bot token (" + explain(err) + ")"}
	c.Fix = fmt.Sprintf("Install the app again (its page, OAuth & Permissions) and set platforms.slack.%s.bot_token (or SLACK_BOT_TOKEN)", a.cfg.Name)
	if app {
		c.Reason = "Slack refuses the app-level token (" + explain(err) + ")"
		c.Fix = fmt.Sprintf("Make one with the scope connections:write (the app's page, Basic Information, App-Level Tokens) and set "+
			"platforms.slack.%s.app_token (or SLACK_APP_TOKEN)", a.cfg.Name)
	}
	return c
}
