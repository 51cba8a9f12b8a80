package discord

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gorilla/websocket"

	"parley/gateway/chat"
)

// effect says what it means that a call may have been carried out.
type effect int

const (
	repeated effect = iota // it can be made again: edits, reactions
	creates                // a second time may make a second message (DEL-004)
)

// Discord's own codes that somebody branches on.
const (
	codeUnknownChannel = 10003
	codeUnknownMessage = 10008
	codeUnknownWebhook = 10015
	codeUnknownReact   = 10014
	codeUnknownInter   = 10062
	codeAcknowledged   = 40060
	codeArchived       = 50083
	codeNoEntry        = 50001
	codeNoPermission   = 50013
	codeThreadExists   = 160004
	codeNoThreadsHere  = 50024
	codeBlockedReacts  = 90001
)

// gone are the codes of what no second try can reach: what is unknown, what the bot
// may not do there, a person who takes no messages.
var gone = []int{
	codeUnknownChannel, 10004, codeUnknownMessage, codeUnknownWebhook, codeNoEntry, 50005, 50007, codeNoPermission, codeArchived, 50278,
}

// coded tests for one of Discord's codes.
func coded(err error, codes ...int) bool {
	var e *apiError
	return errors.As(err, &e) && slices.Contains(codes, e.code)
}

// answered tests for a status.
func answered(err error, status int) bool {
	var e *apiError
	return errors.As(err, &e) && e.status == status
}

// deliveryError turns the error of a call into one of those that chat.Adapter
// names.
func deliveryError(err error, e effect) error {
	var api *apiError
	var unsent *unsentError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsent):
		return err
	case errors.As(err, &api):
		return refusal(api, e)
	case e == creates:
		return fmt.Errorf("%w: %w", chat.ErrAmbiguous, err)
	}
	return err
}

func refusal(err *apiError, e effect) error {
	switch {
	case err.status == http.StatusTooManyRequests:
		return &chat.RateLimitError{RetryAfter: err.after, Account: err.global}
	case err.status >= 500 && e == creates:
		return fmt.Errorf("%w: %w", chat.ErrAmbiguous, err)
	case err.status >= 500 || err.status == http.StatusUnauthorized || err.message == "":
		return err
	case slices.Contains(gone, err.code), err.status == http.StatusForbidden, err.status == http.StatusNotFound:
		return fmt.Errorf("%w: %w", chat.ErrGone, err)
	}
	return &chat.RejectedError{Reason: err.message}
}

// portal is where a bot's settings are.
const portal = "https://discord.com/developers/applications"

// The close codes of the gateway that no second try can help.
const (
	closeNotAuthenticated  = 4004
	closeInvalidShard      = 4010
	closeShardingRequired  = 4011
	closeInvalidVersion    = 4012
	closeInvalidIntents    = 4013
	closeDisallowedIntents = 4014
)

// closedWith is the close code in an error; 0 if there is none.
func closedWith(err error) int {
	var ce *websocket.CloseError
	if errors.As(err, &ce) {
		return ce.Code
	}
	return 0
}

// credential is the end of an adapter that no second try can help, with the exact
// next step; nil for any other error.
func (a *Adapter) credential(err error) error {
	key := "platforms.discord." + a.cfg.Name
	reason, fix := "", ""
	switch code := closedWith(err); {
	case code == closeNotAuthenticated, answered(err, http.StatusUnauthorized):
		reason = "Discord does not know this token (4004, 401)"
		fix = fmt.Sprintf("Open %s → your application → Bot → Reset Token, and set %s.token (or DISCORD_BOT_TOKEN)", portal, key)
	case code == closeDisallowedIntents:
		reason = "Discord does not allow the intents that parley needs (4014)"
		fix = fmt.Sprintf("Open %s → your application → Bot → Privileged Gateway Intents and switch Message Content Intent on; then restart parley", portal)
	case code == closeInvalidIntents:
		reason = "Discord does not know the intents that were asked for (4013)"
		fix = "Update parley, and check that " + key + ".api_base is Discord's own"
	case code == closeInvalidShard, code == closeShardingRequired:
		reason = fmt.Sprintf("the bot is in more servers than one connection may serve (%d)", code)
		fix = "Remove the bot from servers that do not need it (fewer than 2,500), or use a bot of its own for some of them"
	case code == closeInvalidVersion:
		reason = "Discord no longer serves the gateway version that this parley speaks (4012)"
		fix = "Update parley"
	default:
		return nil
	}
	return &chat.CredentialError{Account: a.account, Reason: reason, Fix: fix}
}
