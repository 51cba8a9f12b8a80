package gateway

import (
	"context"
	"time"

	"parley/gateway/chat"
	"parley/store/record"
)

// The gateway's view of storage, by noun. *store.DB implements all of it; every
// method is one transaction. Writes that carry a Fence fail with an error that
// matches record.ErrFenced when the replica no longer owns the conversation.
type (
	// Intake stores what adapters report.
	Intake interface {
		// Receive stores one event unless its key is known. gate decides from rows
		// read in the same transaction. Accepted events find or make their
		// conversation (and its first root session), claim it for the replica if
		// nobody alive owns it, and otherwise notify the owner.
		Receive(ctx context.Context, r record.ReceiveRequest, gate func(record.AccessFacts) record.Verdict) (record.Receipt, error)
		// MoveChat gives the conversations of a chat its new id and notifies their
		// owners.
		MoveChat(ctx context.Context, a chat.AccountID, from, to chat.ChatID) error
	}

	// Ownership is how replicas share the conversations.
	Ownership interface {
		// Register makes this process a replica; it holds an advisory lock on a
		// connection of its own until ctx ends, and beats in database time. lost is
		// called once if the lock or the heartbeat is lost.
		Register(ctx context.Context, host string, lost func(error)) (record.ReplicaID, error)
		// ClaimOrphans takes over up to limit conversations that have open work and no
		// living owner; a turn whose owner died (and that was not suspended) counts
		// one more crash.
		ClaimOrphans(ctx context.Context, r record.ReplicaID, limit int) ([]record.Fence, error)
		// Owned lists the replica's conversations that have received events or
		// unsettled deliveries, as the slow way beside notifications.
		Owned(ctx context.Context, r record.ReplicaID) ([]record.Fence, error)
		// Release gives a conversation up if it has no open work; with force also if
		// it has (shutdown). It reports whether it was released.
		Release(ctx context.Context, f record.Fence, force bool) (bool, error)
		// ClaimAccount takes the account's single intake for the replica if its owner
		// is dead or gone, or already this one.
		ClaimAccount(ctx context.Context, r record.ReplicaID, a chat.AccountID) (bool, error)
		// ReleaseAccount gives it up.
		ReleaseAccount(ctx context.Context, r record.ReplicaID, a chat.AccountID) error
		// Listen calls woken with the conversation of each notification for the
		// replica until ctx ends, reconnecting by itself; after a reconnection it
		// calls woken with an empty id, which means "look everywhere".
		Listen(ctx context.Context, r record.ReplicaID, woken func(record.ConversationID)) error
	}

	// Turns moves a conversation's work along.
	Turns interface {
		// Work loads all that is open.
		Work(ctx context.Context, f record.Fence) (record.Work, error)
		// StartTurn appends the user rows, writes the turn and takes the inbox rows.
		StartTurn(ctx context.Context, f record.Fence, s record.TurnStart) (record.Started, error)
		// JoinTurn appends user rows to a running turn and takes their inbox rows.
		JoinTurn(ctx context.Context, f record.Fence, t record.TurnID, items []record.InboxItem, msgs []record.Message) error
		// SuspendTurn leaves a turn for the next owner, with a cause. One that broke
		// off by its own fault has crashed.
		SuspendTurn(ctx context.Context, f record.Fence, t record.TurnID, cause string, crashed bool) error
		// EndTurn ends a turn; see record.TurnEnd.
		EndTurn(ctx context.Context, f record.Fence, e record.TurnEnd) error
		// UnattendedInARow counts the newest turns that no person started, up to the
		// last one that one did.
		UnattendedInARow(ctx context.Context, c record.ConversationID) (int, error)
		// EndItems ends inbox rows with a reason, applies a command's effect and
		// writes its replies. MoveTo of a session of another conversation fails with
		// an error that matches record.ErrNotFound.
		EndItems(ctx context.Context, f record.Fence, items []record.InboxItem, reason string, e record.Effect, replies []record.Delivery) (record.Conversation, error)
		// LastEdit is the newest change of a message that came in.
		LastEdit(ctx context.Context, c record.ConversationID, m chat.MessageID) (record.InboxItem, error)
	}

	// Transcripts is the sessions that turns read and write; with ToolLog, the
	// gateway implements agentcore.Journal on it.
	Transcripts interface {
		Session(ctx context.Context, id record.SessionID) (record.Session, error)
		// History returns a session's messages in order, those inherited from
		// ancestors by forks included.
		History(ctx context.Context, id record.SessionID) ([]record.Message, error)
		AppendMessages(ctx context.Context, f record.Fence, s record.SessionID, msgs []record.Message) ([]record.Message, error)
		SetSession(ctx context.Context, f record.Fence, s record.Session) error
		// TitleSession names a session that has no title; one that has is
		// record.ErrConflict.
		TitleSession(ctx context.Context, f record.Fence, s record.SessionID, title string) error
		// SetWire freezes what was really sent for a message.
		SetWire(ctx context.Context, f record.Fence, s record.SessionID, seq int64, wire string) error
		// Compress swaps to a child session; it fails with an error that matches
		// record.ErrConflict if the lineage moved.
		Compress(ctx context.Context, f record.Fence, c record.Compression) (record.Session, error)
	}

	// ToolLog is the tool runs of turns, and the turns of their subagents.
	ToolLog interface {
		// Delegate begins the subagent of a task, or finds the one that was begun for it
		// before.
		Delegate(ctx context.Context, f record.Fence, d record.Delegation) (record.Delegated, error)
		SetTurn(ctx context.Context, f record.Fence, t record.Turn) error
		// PlanTools appends the assistant's message and writes its pending tool runs,
		// with a sequence reserved for each result in the order of the calls.
		PlanTools(ctx context.Context, f record.Fence, s record.SessionID, assistant record.Message, runs []record.ToolRun) (record.Message, []record.ToolRun, error)
		ToolRuns(ctx context.Context, t record.TurnID) ([]record.ToolRun, error)
		StartTool(ctx context.Context, f record.Fence, r record.ToolRun) error
		// FinishTool ends a run and stores its result at the reserved sequence.
		FinishTool(ctx context.Context, f record.Fence, s record.SessionID, r record.ToolRun, result record.Message) error
	}

	// Schedules is work that begins by itself.
	Schedules interface {
		Schedules(ctx context.Context, c record.ConversationID) ([]record.Schedule, error)
		SetSchedule(ctx context.Context, s record.Schedule) error
		DeleteSchedule(ctx context.Context, c record.ConversationID, id record.ScheduleID) error
		// DueSchedules puts what is due into inboxes, as plan decides, and returns the
		// replica's conversations that got something.
		DueSchedules(ctx context.Context, r record.ReplicaID, now time.Time, limit int,
			plan func(record.Schedule, time.Time) record.ScheduleStep) ([]record.Fence, error)
		// Enqueue stores an outside event for the conversation at its address; where
		// there is none it fails with an error that matches record.ErrNotFound.
		Enqueue(ctx context.Context, r record.ReplicaID, ev chat.Event) (record.Receipt, error)
	}

	// Deliveries keeps what was posted.
	Deliveries interface {
		// SaveDelivery inserts or updates one row by its id.
		SaveDelivery(ctx context.Context, f record.Fence, d record.Delivery) error
		// TurnDeliveries returns a turn's rows in order of creation.
		TurnDeliveries(ctx context.Context, t record.TurnID) ([]record.Delivery, error)
		// DeliveryOf finds one by its idempotency key.
		DeliveryOf(ctx context.Context, c record.ConversationID, key string) (record.Delivery, error)
	}

	// Approvals keeps the open questions.
	Approvals interface {
		// OpenApproval writes a question and its card, or returns the one that
		// already stands for the turn and call. One that a grant answers comes back
		// approved.
		OpenApproval(ctx context.Context, f record.Fence, a record.Approval, card record.Delivery) (record.Approval, record.Delivery, error)
		// DecideApproval changes an open question once; ok is false if it was no
		// longer open, and the row says what it is. An approval whose answer is a
		// record.GrantScope leaves a grant.
		DecideApproval(ctx context.Context, f record.Fence, id record.ApprovalID, to record.ApprovalState, by chat.Person, answer string) (a record.Approval, ok bool, err error)
		// DecideSpending changes an open question about money of whichever conversation,
		// for an admin who decides elsewhere, and returns it as it is then with the
		// conversation that asked.
		DecideSpending(ctx context.Context, id record.ApprovalID, to record.ApprovalState, by chat.Person) (record.Approval, record.Conversation, error)
		// ApprovalCard returns a question and its card.
		ApprovalCard(ctx context.Context, id record.ApprovalID) (record.Approval, record.Delivery, error)
		// Grants lists the consents of a conversation that hold now, the oldest first.
		Grants(ctx context.Context, c record.ConversationID) ([]record.Grant, error)
	}

	// Lineage is read by commands.
	Lineage interface {
		// Sessions lists a conversation's sessions, newest first, compressed parents
		// folded into their newest descendant.
		Sessions(ctx context.Context, c record.ConversationID, limit int) ([]record.SessionSummary, error)
		// Explain says what became of a message of a conversation, given as the
		// platform's id.
		Explain(ctx context.Context, a chat.AccountID, c record.ConversationID, m chat.MessageID) (record.Why, error)
		// UsageOf sums what a conversation has used since a time, by what it was for.
		UsageOf(ctx context.Context, c record.ConversationID, since time.Time) ([]record.UsageEntry, error)
	}

	// People is who may talk.
	People interface {
		Member(ctx context.Context, p chat.Person) (*record.Member, error)
		// SetMember writes a member.
		SetMember(ctx context.Context, m record.Member) error
		// Admins lists owners and admins of a platform, those of the configuration
		// included, with the address of their direct conversation, where they have one.
		Admins(ctx context.Context, platform string, configured []chat.Person) ([]record.Contact, error)
		// ReceiveHeld makes a member's held messages of the last day received; it
		// returns the conversations that got some.
		ReceiveHeld(ctx context.Context, r record.ReplicaID, p chat.Person) ([]record.Fence, error)
	}

	// Pairing lets new people in.
	Pairing interface {
		// Claim redeems a claim code: the person becomes owner. ok is false if the code
		// is unknown, used or expired.
		Claim(ctx context.Context, code string, m record.Member) (ok bool, err error)
		// NewClaim writes a claim code for an account, and Owned says whether an
		// account's platform has an owner or admin already.
		NewClaim(ctx context.Context, p record.Pairing) error
		HasOwner(ctx context.Context, platform string) (bool, error)
		// DecidePairing allows or ignores an open request.
		DecidePairing(ctx context.Context, code string, to record.PairingState) (p record.Pairing, ok bool, err error)
	}
)

// Store is everything the gateway needs; *store.DB is one.
type Store interface {
	Intake
	Ownership
	Turns
	Transcripts
	ToolLog
	Schedules
	Deliveries
	Approvals
	Lineage
	People
	Pairing
}
