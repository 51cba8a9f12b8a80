package faketelegram

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEntityVectors holds the parser to the real server's own tests (MKD-002,
// MKD-003, MKD-013).
func TestEntityVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/entity_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	type entity struct {
		Type           string `json:"type"`
		Offset, Length int
		Arg            string
	}
	var vectors []struct {
		In, Out, Error string
		Entities       []entity
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		text, entities, err := parseHTML(v.In)
		if v.Error != "" {
			if err == nil || err.Error() != v.Error {
				t.Errorf("%q: error %v, want %s", v.In, err, v.Error)
			}
			continue
		}
		var got []entity
		for _, e := range entities {
			got = append(got, entity{e.Type, e.Offset, e.Length, e.URL + e.Language})
		}
		if len(v.Entities) == 0 {
			v.Entities = nil
		}
		if diff := cmp.Diff(v.Entities, got); err != nil || text != v.Out || diff != "" {
			t.Errorf("%q: text %q, error %v, entities (-want +got)\n%s", v.In, text, err, diff)
		}
	}
}
