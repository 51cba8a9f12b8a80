// Package picture makes files into images that every model API takes. It guarantees a
// bounded image or an error, whatever is in the file: its size in pixels is read before
// it is decoded, and what is larger than models look at is made smaller (ATT-002).
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // registers the format
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"parley/agentcore/llm"
)

const (
	// side is the longest side that models look at, in pixels; more is made smaller by
	// the servers, or refused where a request has many images.
	side = 1568
	// most bounds the bytes of an image that is sent, and mostRead those of a file.
	most     = 3 << 20
	mostRead = 50 << 20
	// mostPixels bounds what is decoded: four bytes each.
	mostPixels = 50_000_000
)

// Read makes an image of a file in a folder; links do not lead out of it.
func Read(folder, name string) (*llm.Image, error) {
	f, err := os.OpenInRoot(folder, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostRead {
		return nil, errors.New("picture: no plain file, or too large")
	}
	b, err := io.ReadAll(io.LimitReader(f, mostRead))
	if err != nil {
		return nil, err
	}
	return Make(b)
}

// Make makes an image of bytes: as they are if models take them so, else smaller.
func Make(b []byte) (*llm.Image, error) {
	if webp(b) {
		if len(b) > most {
			return nil, errors.New("picture: a WebP image that is too large")
		}
		return &llm.Image{MIME: "image/webp", Data: b}, nil
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	switch {
	case c.Width <= 0 || c.Height <= 0 || c.Width > mostPixels/c.Height:
		return nil, fmt.Errorf("picture: %d × %d pixels are too many", c.Width, c.Height)
	case max(c.Width, c.Height) <= side && len(b) <= most:
		// Whole at least at its beginning: a header alone proves nothing.
		if _, _, err := image.Decode(bytes.NewReader(b)); err != nil {
			return nil, fmt.Errorf("picture: %w", err)
		}
		return &llm.Image{MIME: "image/" + format, Data: b}, nil
	}
	m, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	return encode(shrink(m), format)
}

func webp(b []byte) bool {
	return len(b) > 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
}

// encode keeps drawings sharp where they stay small.
func encode(m image.Image, format string) (*llm.Image, error) {
	var b bytes.Buffer
	if format != "jpeg" {
		if err := png.Encode(&b, m); err != nil {
			return nil, fmt.Errorf("picture: %w", err)
		}
		if b.Len() <= most {
			return &llm.Image{MIME: "image/png", Data: b.Bytes()}, nil
		}
		b.Reset()
	}
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 85}); err != nil {
		return nil, fmt.Errorf("picture: %w", err)
	}
	if b.Len() > most {
		return nil, errors.New("picture: too large even when it is made smaller")
	}
	return &llm.Image{MIME: "image/jpeg", Data: b.Bytes()}, nil
}

// shrink fits an image into side × side; each pixel is the mean of those it stands for.
func shrink(m image.Image) *image.RGBA {
	from := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(from, from.Bounds(), m, m.Bounds().Min, draw.Src)
	w, h := from.Bounds().Dx(), from.Bounds().Dy()
	long := max(w, h)
	if long <= side {
		return from
	}
	to := image.NewRGBA(image.Rect(0, 0, max(1, w*side/long), max(1, h*side/long)))
	nw, nh := to.Bounds().Dx(), to.Bounds().Dy()
	for y := range nh {
		for x := range nw {
			to.SetRGBA(x, y, mean(from, image.Rect(x*w/nw, y*h/nh, max(x*w/nw+1, (x+1)*w/nw), max(y*h/nh+1, (y+1)*h/nh))))
		}
	}
	return to
}

func mean(m *image.RGBA, r image.Rectangle) color.RGBA {
	var sum [4]int
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := m.Pix[m.PixOffset(r.Min.X, y):m.PixOffset(r.Max.X, y)]
		for i, v := range row {
			sum[i%4] += int(v)
		}
	}
	n := r.Dx() * r.Dy()
	return color.RGBA{R: uint8(sum[0] / n), G: uint8(sum[1] / n), B: uint8(sum[2] / n), A: uint8(sum[3] / n)}
}
