package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"

	"parley/config"
)

func TestNoSecretInTheLog(t *testing.T) {
	const token, key, own = "1234567890:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr", "sk-proj-abcdefghijklmnop", "a-password-of-mine"
	for _, format := range []string{"console", "json"} {
		var out bytes.Buffer
		log, err := newLogger(config.LogConfig{Level: "debug", Format: format}, &out, func(s string) string {
			return strings.ReplaceAll(s, own, "[secret]")
		})
		if err != nil {
			t.Fatal(err)
		}
		log.Error("call "+token, zap.Error(errors.New(`Post "https://api.telegram.org/bot`+token+`/getMe": refused`)),
			zap.Strings("all", []string{key, own}), zap.String("header", "Authorization: Bearer abcdefghijklmnopqrst"),
			zap.Any("nested", struct{ A, B string }{"xoxb-1234567890-abcdef", "xapp-1-A012345-678"}))
		log.Debug("time 2026:12 and ratio 12:34 stay")
		for _, secret := range []string{token, "AAbbCC", key, own, "abcdefghijklmnopqrst", "xoxb-", "xapp-"} {
			if strings.Contains(out.String(), secret) {
				t.Errorf("%s: %s is in the log:\n%s", format, secret, out.String())
			}
		}
		if !strings.Contains(out.String(), "/getMe") || !strings.Contains(out.String(), "2026:12 and ratio 12:34") {
			t.Errorf("%s: more is masked than the secrets:\n%s", format, out.String())
		}
	}
}

func TestTextFromChatsIsSafeForTheTerminal(t *testing.T) {
	if got := oneLine("a\x1b[2Jb\u202ec\nd", 60); got != "a[2Jbc d" {
		t.Errorf("got %q", got)
	}
	if got := oneLine("привет, мир", 7); got != "привет…" {
		t.Errorf("got %q", got)
	}
	if got := plain("a\x1b]0;title\x07\nb\tc"); got != "a]0;title\nb\tc" {
		t.Errorf("got %q", got)
	}
}
