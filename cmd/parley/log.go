package main

import (
	"io"
	"regexp"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"parley/config"
	"parley/config/secret"
)

// newLogger makes the one logger of the process. Every line passes the redactor as
// bytes, just before it is written: nothing that a field, an error or a stack trace
// carries can get around it.
func newLogger(c config.LogConfig, w io.Writer, redact func(string) string) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, err
	}
	ec := zap.NewProductionEncoderConfig()
	ec.EncodeTime = zapcore.ISO8601TimeEncoder
	ec.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(ec)
	if c.Format == "console" {
		ec.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		ec.EncodeLevel = zapcore.CapitalLevelEncoder
		encoder = zapcore.NewConsoleEncoder(ec)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(redactor{w, redact})), level)
	return zap.New(core, zap.AddStacktrace(zapcore.DPanicLevel)), nil
}

// redactor masks secrets in what is written: those of the configuration, and what
// has the shape of a credential.
type redactor struct {
	w      io.Writer
	redact func(string) string
}

var credential = regexp.MustCompile(
	`[0-9]{6,12}:[A-Za-z0-9_-]{30,}` + // Telegram's bot tokens, in URLs too
		`|\bsk-[A-Za-z0-9_-]{16,}` + // keys of model providers
		`|\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}` + // Slack's tokens
		`|(?i:bearer )[A-Za-z0-9._~+/-]{16,}=*`)

func (r redactor) Write(p []byte) (int, error) {
	line := r.redact(string(p))
	line = credential.ReplaceAllString(line, secret.Mask)
	if _, err := io.WriteString(r.w, line); err != nil {
		return 0, err
	}
	return len(p), nil
}
