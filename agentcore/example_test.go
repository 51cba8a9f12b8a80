package agentcore_test

import (
	"context"
	"fmt"

	"parley/agentcore"
	"parley/agentcore/agentcoretest"
	"parley/agentcore/llm"
	"parley/store/record"
)

func ExampleAgent_Chat() {
	agent, err := agentcore.New(agentcore.DefaultConfig(), agentcore.Deps{
		Model:        agentcoretest.NewModel(agentcoretest.Say("Hello! What can I do for you?")), // any llm.Provider
		DefaultModel: "example/model",
		Engine:       &agentcoretest.Engine{},
		Asker:        agentcore.DenyAsker{}, // nobody is here to consent to anything
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := agent.Chat(context.Background(), "hi")
	fmt.Println(text, err)
	// Output: Hello! What can I do for you? <nil>
}

func ExampleAgent_RunConversation() {
	agent, err := agentcore.New(agentcore.DefaultConfig(), agentcore.Deps{
		Model: agentcoretest.NewModel(
			agentcoretest.SayAndCall("I look it up.", agentcoretest.Tool("call_1", "current_time", `{"zone":"Nowhere"}`)),
			agentcoretest.Say("There is no such zone."),
		),
		DefaultModel: "example/model",
		Engine:       &agentcoretest.Engine{},
		Asker:        agentcore.DenyAsker{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := agent.RunConversation(context.Background(), agentcore.Request{
		Message: "What time is it in Nowhere?",
		System:  "Answer in one sentence.",
		History: []record.Message{{Role: llm.User, Content: "hi"}, {Role: llm.Assistant, Content: "Hello!"}},
		TaskID:  "example-turn",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.State, res.Iterations, len(res.Messages))
	fmt.Println(res.Text)
	// Output:
	// done 2 6
	// There is no such zone.
}
