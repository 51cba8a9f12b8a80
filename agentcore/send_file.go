package agentcore

import (
	"context"
	"errors"

	"parley/agentcore/tool"
)

const sendFileName = "send_file"

// Outbox posts files to where a turn answers. The gateway implements it.
type Outbox interface {
	// SendFile posts a file of the conversation's folder, once for a call, and returns
	// when the platform has taken it. What the model should know is a *FileError; any
	// other error ends the turn.
	SendFile(ctx context.Context, call, path string) error
}

// FileError says why a file was not sent, for the model.
type FileError struct{ Said string }

func (e *FileError) Error() string { return "agentcore: a file was not sent: " + e.Said }

type sendFileInput struct {
	Path string `json:"path" jsonschema:"the file, relative to the working folder, for example report.pdf"`
}

// sendFile is the only way by which files leave: what a model writes is never searched
// for paths. Without a turn the tool only declares itself.
func sendFile(t *turn) (tool.Tool, error) {
	spec := tool.Spec{Needs: tool.SendFiles}
	spec.Name = sendFileName
	spec.Description = "Post a file of the working folder into the chat, for example a document or picture that you made. " +
		"It appears at once, above your answer; say in the answer what it is. A path that you write in an answer sends nothing."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in sendFileInput) (tool.Result, error) {
		if t == nil || t.req.Outbox == nil {
			return tool.Failure("Files cannot be sent from here."), nil
		}
		err := t.req.Outbox.SendFile(ctx, c.ID, in.Path)
		var refused *FileError
		switch {
		case errors.As(err, &refused):
			return tool.Failure("%s", refused.Said), nil
		case err != nil:
			return tool.Result{}, err
		}
		return tool.Result{Text: "The file is in the chat now."}, nil
	})
}
