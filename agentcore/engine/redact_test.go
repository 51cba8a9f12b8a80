package engine

import (
	"strings"
	"testing"
)

// SEC-003. The values are made up; they are joined here so that no scanner takes
// this file for a leak.
func TestRedact(t *testing.T) {
	x := strings.Repeat("aB3", 14)
	for name, tc := range map[string]struct{ text, want string }{
		"openai":        {"use sk-" + "proj-" + x + " now", "use [REDACTED] now"},
		"stripe":        {"sk_" + "live_" + x, redacted},
		"github":        {"ghp_" + x, redacted},
		"github fine":   {"github_" + "pat_" + x, redacted},
		"gitlab":        {"glpat-" + x, redacted},
		"slack":         {"xoxb-" + "123-456-" + x, redacted},
		"slack app":     {"xapp-" + "1-" + x, redacted},
		"aws":           {"id AKIA" + "ABCDEFGHIJKLMNOP.", "id [REDACTED]."},
		"google":        {"AIza" + x, redacted},
		"telegram":      {"https://api.telegram.org/bot123456789:AA" + x + "/getMe", "https://api.telegram.org/bot[REDACTED]/getMe"},
		"discord":       {"MTA" + x[:22] + ".Gabcde." + x, redacted},
		"jwt":           {"eyJ" + x + ".eyJ" + x + "." + x, redacted},
		"tavily":        {"tvly-" + x, redacted},
		"npm":           {"npm_" + x, redacted},
		"sendgrid":      {"SG." + x + "." + x, redacted},
		"private key":   {"a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[REDACTED]\nb"},
		"cut key":       {"-----BEGIN PRIVATE KEY-----\nMII", redacted},
		"URL":           {"postgres://ada:hunter22@db/x", "postgres://ada:[REDACTED]@db/x"},
		"header":        {"Authorization: Bearer abc.def", "Authorization: Bearer [REDACTED]"},
		"env":           {"DB_PASSWORD=hunter22\nPORT=80", "DB_PASSWORD=[REDACTED]\nPORT=80"},
		"json":          {`{"apiKey": "hunter22", "n": 1}`, `{"apiKey": "[REDACTED]", "n": 1}`},
		"yaml":          {"client_secret: hunter22", "client_secret: [REDACTED]"},
		"plain":         {"The token bucket holds 5; a secret garden; press any key: enter", "The token bucket holds 5; a secret garden; press any key: enter"},
		"ordinary URL":  {"https://example.org/a:b@c", "https://example.org/a:b@c"},
		"count":         {`"max_tokens": 100`, `"max_tokens": 100`},
		"two URLs":      {"http://a:bcd@e http://f/g:h@i redis://:pw@r", "http://a:[REDACTED]@e http://f/g:h@i redis://:[REDACTED]@r"},
		"large count":   {`"max_tokens": 128000, x-api-key: hunter22`, `"max_tokens": 128000, x-api-key: [REDACTED]`},
		"token URL":     {"token: https://example.org/x", "token: [REDACTED]"},
		"end":           {"password=", "password="},
		"several":       {"ghp_" + x + " and glpat-" + x, "[REDACTED] and [REDACTED]"},
		"nothing":       {"", ""},
		"umlauts stay":  {"Schlüssel: größer", "Schlüssel: größer"},
		"already":       {"password=[REDACTED]", "password=[REDACTED]"},
		"telegram bare": {"token 123456789:AA" + x, "token [REDACTED]"},
	} {
		if got := Redact(tc.text); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if got := Redact(Redact(tc.text)); got != tc.want {
			t.Errorf("%s: twice: %q", name, got)
		}
	}
}

// SEC-003: no secret of the folded part reaches the summariser or the child.
func TestSecretsStayOutOfSummaries(t *testing.T) {
	secret := "ghp_" + strings.Repeat("Zz9", 12)
	c, s := newCompressor(t, DefaultConfig(), answer{text: "## Goal\nuse " + secret +
		"\n```json\n{\"facts\":[{\"key\":\"token\",\"value\":\"" + secret + "\"}]}\n```"})
	msgs := said("u"+strings.Repeat("ca", 20), 300)
	for i := range msgs[:len(msgs)-20] {
		msgs[i].Content += " " + secret
		for j := range msgs[i].ToolCalls {
			msgs[i].ToolCalls[j].Arguments = `{"key":"` + secret + `"}`
		}
	}
	msgs = append(msgs, said("ua", 10)...)
	for i := range msgs {
		msgs[i].Seq = int64(i + 1)
	}
	r, err := c.Compress(t.Context(), input(msgs))
	if err != nil || r.Outcome != Compressed {
		t.Fatal(r, err)
	}
	if strings.Contains(s.asked[0].Messages[0].Text(), secret) {
		t.Error("the summariser was given a secret")
	}
	if strings.Contains(r.Compression.Summary.Content, secret) || len(r.Compression.Facts) > 0 {
		t.Errorf("a secret is in the child: %+v", r.Compression.Facts)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("password=x -----BEGIN PRIVATE KEY----- ://a:b@c")
	f.Fuzz(func(t *testing.T, s string) { _ = Redact(s) })
}
