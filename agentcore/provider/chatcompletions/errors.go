package chatcompletions

import (
	"errors"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
)

// translate makes the errors of the library ours, which refuses some requests by
// itself. All others are what package wire made of the server's answer.
func translate(err error) error {
	switch {
	case errors.Is(err, openai.ErrReasoningToolsRequireResponses):
		return &llm.Error{Kind: llm.KindMalformed, Message: "this model takes tools only with api_mode: codex_responses", Err: err}
	case errors.Is(err, openai.ErrChatCompletionInvalidModel):
		return &llm.Error{Kind: llm.KindNotFound, Message: "this model has no chat completions", Err: err}
	case errors.Is(err, openai.ErrReasoningEffortUnsupported):
		return &llm.Error{Kind: llm.KindMalformed, Message: err.Error(), Err: err}
	}
	return err
}
