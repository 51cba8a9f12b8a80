package telegram

import (
	"errors"
	"fmt"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"parley/gateway/chat"
)

// effect says what it means that a call may have been carried out.
type effect int

const (
	repeated effect = iota // it can be made again: edits, reactions
	creates                // a second time makes a second message (DEL-004)
)

// Telegram's own words are the only means to tell its 400s apart.
const (
	saysNoThread    = "message thread not found"
	saysBadEntities = "can't parse entities"
	saysNotModified = "message is not modified"
	saysNoDelete    = "message to delete not found"
	saysQueryOld    = "query is too old"
)

// says tests what the Bot API answered, without regard to case.
func says(err error, words ...string) bool {
	var e *tgbotapi.Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Message)
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// gone are the answers for what no second try can reach.
var gone = []string{
	"chat not found", "user not found", "peer_id_invalid", "group chat was upgraded", "group chat was deactivated",
	"message to edit not found", "message can't be edited", "message_id_invalid", saysNoThread,
	"topic_closed", "topic_deleted", "chat_write_forbidden", "not enough rights to send", "have no rights to send",
	"need administrator rights", "bot is not a member", "bot was kicked", "bot was blocked", "chat_restricted",
}

// deliveryError turns the error of a call into one of those that chat.Adapter
// names.
func deliveryError(err error, e effect) error {
	var api *tgbotapi.Error
	var unsent *unsentError
	var status *statusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unsent):
		return err
	case errors.As(err, &api):
		return refusal(api, e)
	case errors.As(err, &status) && status.status < 500:
		return err
	case e == creates:
		return fmt.Errorf("%w: %w", chat.ErrAmbiguous, err)
	}
	return err
}

func refusal(err *tgbotapi.Error, e effect) error {
	switch {
	case err.Code == 429 || err.RetryAfter > 0:
		return &chat.RateLimitError{RetryAfter: max(time.Duration(err.RetryAfter)*time.Second, time.Second)}
	case err.Code >= 500 && e == creates:
		return fmt.Errorf("%w: telegram: %d %s", chat.ErrAmbiguous, err.Code, err.Message)
	case err.Code >= 500 || err.Code == 401 || err.Code == 404:
		return fmt.Errorf("telegram: %d %s", err.Code, err.Message)
	case err.Code == 403 || says(err, gone...):
		return fmt.Errorf("%w: telegram: %s", chat.ErrGone, err.Message)
	}
	return &chat.RejectedError{Reason: err.Message}
}

// credential is the end of an adapter whose token does not work; nil for any other
// error.
func (a *Adapter) credential(err error) error {
	var e *tgbotapi.Error
	if !errors.As(err, &e) || e.Code != 401 && e.Code != 404 {
		return nil
	}
	reason := "Telegram does not know this token (401)"
	if e.Code == 404 {
		reason = "there is no bot at this address (404): the token is malformed, or api_base is no Bot API server"
	}
	fix := fmt.Sprintf("Get a new token from @BotFather and set platforms.telegram.%s.token (or TELEGRAM_BOT_TOKEN)", a.cfg.Name)
	return &chat.CredentialError{Account: a.account, Reason: reason, Fix: fix}
}
