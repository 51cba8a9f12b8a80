package transcription_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"parley/agentcore/llm"
	"parley/agentcore/provider/providertest"
	"parley/agentcore/provider/transcription"
	"parley/config/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret"

func client(t *testing.T, s *providertest.Server, k string, model llm.ModelID) *transcription.Client {
	t.Helper()
	c, err := transcription.New(transcription.Config{BaseURL: s.BaseURL(), APIKey: secret.New(k), Model: model})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTranscribe(t *testing.T) {
	s := providertest.NewServer(t, providertest.Options{Key: key, Models: []string{"whisper-1"}})
	c := client(t, s, key, "openai/whisper-1")
	for _, name := range []string{"3fa9c1e2-voice.ogg", "voice.oga", "note.m4a"} {
		if got, err := c.Transcribe(t.Context(), name, strings.NewReader(providertest.Recording("  good morning \n"))); err != nil || got != "good morning" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if r := s.Refusals(); len(r) > 0 {
		t.Error(r)
	}
}

func TestTranscribeFailures(t *testing.T) {
	s := providertest.NewServer(t, providertest.Options{Key: key, Models: []string{"whisper-1"}})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, tc := range map[string]struct {
		ctx        context.Context
		key        string
		model      llm.ModelID
		name, said string
		want       llm.ErrorKind
	}{
		"key":   {t.Context(), "sk-other-secret", "openai/whisper-1", "a.ogg", providertest.Recording("x"), llm.KindAuth},
		"model": {t.Context(), key, "openai/whisper-9", "a.ogg", providertest.Recording("x"), llm.KindNotFound},
		"file":  {t.Context(), key, "openai/whisper-1", "a.exe", providertest.Recording("x"), llm.KindMalformed},
		"noise": {t.Context(), key, "openai/whisper-1", "a.ogg", "not a recording", llm.KindMalformed},
		"stop":  {ended, key, "openai/whisper-1", "a.ogg", providertest.Recording("x"), llm.KindTimeout},
	} {
		_, err := client(t, s, tc.key, tc.model).Transcribe(tc.ctx, tc.name, strings.NewReader(tc.said))
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Kind != tc.want {
			t.Errorf("%s: %v, want %s", what, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the key: %v", what, err)
		}
	}
	if _, err := transcription.New(transcription.Config{Model: "whisper"}); err == nil {
		t.Error("a model without a provider is taken")
	}
}
