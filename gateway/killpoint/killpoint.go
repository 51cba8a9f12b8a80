// Package killpoint marks the places where the crash test kills the process. In
// ordinary builds it is nothing; with the build tag `killpoints` the process sends
// itself SIGKILL at the N-th pass of the point named in PARLEY_KILL_AT="name" or
// "name:N". It is a leaf.
package killpoint

// The points of a turn's life, in order.
const (
	IntakeStored     = "intake-stored"     // the event is durable, not yet acknowledged
	TurnStarted      = "turn-started"      // user rows and turn are committed
	ModelCalled      = "model-called"      // the request is out
	ModelFirstToken  = "model-first-token" // the answer has begun
	LiveSending      = "live-sending"      // the live message's row says sending
	LiveSent         = "live-sent"         // it is posted, its id not yet stored
	LiveStored       = "live-stored"       // its id is stored
	ToolsPlanned     = "tools-planned"     // calls are rows, none has run
	ToolStarted      = "tool-started"      // a run is marked started
	ToolRan          = "tool-ran"          // it ran, its result is not stored
	ToolFinished     = "tool-finished"     // its result is stored
	TurnEnding       = "turn-ending"       // the answer is complete, not committed
	TurnEnded        = "turn-ended"        // the answer and its deliveries are committed
	DeliverySending  = "delivery-sending"  // a final part's row says sending
	DeliverySent     = "delivery-sent"     // it is posted, its id not yet stored
	DeliveryStored   = "delivery-stored"   // its id is stored
	CompressionBegun = "compression-begun" // a summary is being made
	CompressionMade  = "compression-made"  // the summary is there, the swap not committed
	CompressionSwap  = "compression-swap"  // the swap is committed
	ApprovalOpened   = "approval-opened"   // a question is a row, its card not posted
	ApprovalDecided  = "approval-decided"  // it is decided, the tool has not run
)

// Names lists all points.
var Names = []string{
	IntakeStored, TurnStarted, ModelCalled, ModelFirstToken, LiveSending, LiveSent, LiveStored, ToolsPlanned,
	ToolStarted, ToolRan, ToolFinished, TurnEnding, TurnEnded, DeliverySending, DeliverySent, DeliveryStored,
	CompressionBegun, CompressionMade, CompressionSwap, ApprovalOpened, ApprovalDecided,
}
