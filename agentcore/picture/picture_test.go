package picture_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"parley/agentcore/picture"
)

func drawing(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: 40, A: 255})
		}
	}
	return m
}

func encoded(t testing.TB, m image.Image, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	if format == "png" {
		err = png.Encode(&b, m)
	} else {
		err = jpeg.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ATT-002: what is too large in pixels is made smaller in its proportions, the rest is
// left as it is.
func TestMake(t *testing.T) {
	small := encoded(t, drawing(20, 10), "png")
	got, err := picture.Make(small)
	if err != nil || got.MIME != "image/png" || !bytes.Equal(got.Data, small) {
		t.Errorf("a small image: %v", err)
	}
	for _, format := range []string{"png", "jpeg"} {
		got, err := picture.Make(encoded(t, drawing(600, 3570), format))
		if err != nil {
			t.Fatal(err)
		}
		c, f, err := image.DecodeConfig(bytes.NewReader(got.Data))
		if err != nil || c.Height != 1568 || c.Width != 263 || got.MIME != "image/"+f {
			t.Errorf("%s: %d × %d %s, %v", format, c.Width, c.Height, got.MIME, err)
		}
	}
}

// ATT-002: what is no image, or one that would fill the memory, is an error and nothing
// else.
func TestMakeRefuses(t *testing.T) {
	whole := encoded(t, drawing(20, 10), "png")
	bomb := bytes.Clone(whole)
	copy(bomb[16:], []byte{0, 1, 0, 0, 0, 1, 0, 0}) // 65,536 × 65,536 pixels, as its header says
	for what, b := range map[string][]byte{"nothing": nil, "text": []byte("<svg/>"), "cut": whole[:len(whole)-20], "bomb": bomb} {
		if got, err := picture.Make(b); err == nil {
			t.Errorf("%s: %d bytes of %s", what, len(got.Data), got.MIME)
		}
	}
}

func FuzzMake(f *testing.F) {
	f.Add(encoded(f, drawing(3, 2), "png"))
	f.Add(encoded(f, drawing(3, 2), "jpeg"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := picture.Make(b); err == nil && (len(got.Data) == 0 || got.MIME == "") {
			t.Error("an image without content")
		}
	})
}

// A link that was put into the folder leads nowhere.
func TestReadStaysInTheFolder(t *testing.T) {
	folder, outside := t.TempDir(), filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(outside, encoded(t, drawing(2, 2), "png"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "a.png")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", outside, "../a.png", "none.png", "."} {
		if _, err := picture.Read(folder, name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
