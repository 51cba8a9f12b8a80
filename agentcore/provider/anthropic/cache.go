package anthropic

// cacheControl is a cache marker.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{"ephemeral"}

// mark sets the cache markers, at most four: behind the tools, behind the system
// prompt, and behind the newest two turns of the user. The older one of these is where
// the conversation's last request had its newest marker, so that what was written then
// is read now; everything before a marker has the same bytes in both.
func (b *body) mark() {
	if n := len(b.Tools); n > 0 {
		b.Tools[n-1].CacheControl = ephemeral
	}
	if n := len(b.System); n > 0 {
		b.System[n-1].CacheControl = ephemeral
	}
	left := 2
	for i := len(b.Messages) - 1; i >= 0 && left > 0; i-- {
		t := b.Messages[i]
		if t.Role != "user" || len(t.Content) == 0 {
			continue
		}
		if last, ok := t.Content[len(t.Content)-1].(*block); ok {
			last.CacheControl = ephemeral
			left--
		}
	}
}
