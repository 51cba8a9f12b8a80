// Package secret holds text that must never be printed: tokens and keys. It is a
// leaf. A String cannot be formatted, marshalled or logged by accident; Reveal is
// the one way to its content.
package secret

import (
	"encoding/json"
	"fmt"
)

// Mask is what is shown in place of a secret.
const Mask = "[secret]"

// String is a secret. The zero value is the empty secret. Two are equal if content
// and source are.
type String struct {
	v    string
	from Source // nil: it cannot be read again
}

// New makes a secret that is what it is for good.
func New(v string) String { return String{v: v} }

// Reveal returns the content; call it only where it goes on the wire.
func (s String) Reveal() string { return s.v }

// Empty says whether there is no content.
func (s String) Empty() bool { return s.v == "" }

// String returns Mask, or nothing for the empty secret.
func (s String) String() string {
	if s.v == "" {
		return ""
	}
	return Mask
}

// Format implements fmt.Formatter for every verb, %#v included.
func (s String) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalJSON implements json.Marshaler.
func (s String) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML implements yaml.Marshaler.
func (s String) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalText implements encoding.TextMarshaler.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, which YAML uses as well.
func (s *String) UnmarshalText(b []byte) error { s.v = string(b); return nil }
