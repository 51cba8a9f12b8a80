package discord

import (
	"strconv"
	"testing"

	"github.com/bwmarrin/discordgo"
)

// However many threads there have been, a new one is remembered and a changed one
// believed: otherwise each message in it would cost a call. Closed ones go first, and
// channels stay (RES-001).
func TestThreadsAreForgotten(t *testing.T) {
	p := newPlaces()
	p.put(channel{ID: "room", Kind: discordgo.ChannelTypeGuildText})
	thread := func(id string, archived bool) channel {
		c := channel{ID: id, Kind: discordgo.ChannelTypeGuildPublicThread, Parent: "room"}
		c.Archive.Archived = archived
		return c
	}
	p.put(thread("open", false))
	for i := range maxPlaces {
		p.put(thread(strconv.Itoa(i), true))
	}
	p.put(thread("new", false))
	p.put(thread("new", true))
	if c, ok := p.known("new"); !ok || !c.Archive.Archived {
		t.Errorf("of the new thread is known %t, %+v", ok, c)
	}
	for id, want := range map[string]bool{"room": true, "open": true, "0": false} {
		if _, ok := p.known(id); ok != want {
			t.Errorf("%s is known: %t", id, ok)
		}
	}
	for i := range maxPlaces {
		p.put(thread("open"+strconv.Itoa(i), false))
	}
	if _, ok := p.known("room"); !ok || len(p.channels) > maxPlaces {
		t.Errorf("%d places are known, the room: %t", len(p.channels), ok)
	}
	for i := range maxPlaces + 1 {
		p.refuse(strconv.Itoa(i))
	}
	if !p.refuses(strconv.Itoa(maxPlaces)) || len(p.refused) > maxPlaces {
		t.Errorf("%d refusals are known", len(p.refused))
	}
}
