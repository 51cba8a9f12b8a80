package agentcore

import (
	"errors"

	"parley/agentcore/llm"
	"parley/store/record"
)

// userError is an error that carries the words for people.
type userError struct{ text string }

func (e *userError) Error() string { return e.text }

// kindTexts are what people are told about each kind of provider error.
var kindTexts = map[llm.ErrorKind]string{
	llm.KindAuth:        "The model provider refused the credentials. An admin needs to check the API key; `parley doctor` shows which one.",
	llm.KindBilling:     "The model provider's quota is used up or unpaid. An admin needs to look at the account.",
	llm.KindRateLimit:   "The model provider allows no more requests for now. Try again in a minute.",
	llm.KindOverloaded:  "The model provider is overloaded or down. Try again in a few minutes.",
	llm.KindNetwork:     "The model provider could not be reached, or the connection broke off. Try again in a few minutes.",
	llm.KindTimeout:     "The model did not answer in time. Try again in a few minutes.",
	llm.KindNotFound:    "The model provider does not know this model. Choose another one with `/model`, or an admin corrects the configuration.",
	llm.KindOverflow:    "This conversation no longer fits into the model's context. Begin a new one with `/new`, or try `/compress`.",
	llm.KindMalformed:   "The model provider refused the request as malformed.",
	llm.KindFiltered:    "The model provider's content filter refused to answer this.",
	llm.KindEmpty:       "The model gave an empty answer, also when asked again. Try to put it differently.",
	llm.KindUnavailable: "No model provider is configured. An admin needs to add an API key; `parley doctor` shows how.",
}

// userText returns the words of an error that carries some. Of a provider's own
// wording only what explains a refused request is repeated.
func userText(err error) (text string, ok bool) {
	var own *userError
	if errors.As(err, &own) {
		return own.text, true
	}
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return "", false
	}
	text, ok = kindTexts[failure.Kind]
	if ok && failure.Kind == llm.KindMalformed && failure.Message != "" {
		text += " It says: " + failure.Message
	}
	return text, ok
}

// reference names an internal error in the log.
func reference() string {
	id := record.NewID()
	return id[len(id)-8:]
}
