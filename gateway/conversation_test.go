package gateway

import (
	"context"
	"testing"

	"parley/store/record"
)

// A hint may arrive after its row was loaded and dealt with: it is not answered
// twice, and costs nothing.
func TestALateHintIsIgnored(t *testing.T) {
	c := &conversation{}
	c.keep(record.InboxItem{Seq: 2})
	c.keep(record.InboxItem{Seq: 1})
	c.keep(record.InboxItem{Seq: 2})
	if len(c.inbox) != 2 || c.inbox[0].Seq != 1 {
		t.Fatalf("the inbox is %+v", c.inbox)
	}
	c.drop(record.InboxItem{Seq: 1})
	c.keep(record.InboxItem{Seq: 1})
	if len(c.inbox) != 1 || c.inbox[0].Seq != 2 {
		t.Errorf("after a late hint the inbox is %+v", c.inbox)
	}
}

// The row of /compress stays open until the compression has ended. Loading the work
// meanwhile must not begin it again.
func TestACompressionIsNotBegunTwice(t *testing.T) {
	row := record.InboxItem{Seq: 7}
	c := &conversation{compression: &runningCompression{asked: &invocation{item: row}}}
	c.take(context.Background(), record.Work{Inbox: []record.InboxItem{row, {Seq: 8}}})
	if len(c.inbox) != 1 || c.inbox[0].Seq != 8 {
		t.Errorf("the inbox is %+v", c.inbox)
	}
}

// A conversation that takes nothing, since its account is not configured here, does not
// collect the wake-ups of every sweep (RES-001).
func TestWakeUpsAreMerged(t *testing.T) {
	box := newMailbox()
	for epoch := range int64(100) {
		box.put(wake{fence: record.Fence{Epoch: epoch}})
	}
	box.put(wake{fence: record.Fence{Epoch: 3}})
	box.put(wake{hint: &record.InboxItem{Seq: 1}})
	box.put(wakeLost{})
	box.put(wake{})
	its := box.take()
	if len(its) != 4 || its[0].(wake).fence.Epoch != 99 || its[1].(wake).hint == nil {
		t.Errorf("the box has %d items: %+v", len(its), its)
	}
}
