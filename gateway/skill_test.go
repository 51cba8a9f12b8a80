package gateway_test

import (
	"strings"
	"testing"

	"parley/gateway/gatewaytest"
)

// "/skill NAME" is a message to the agent, a bare "/skill" a command.
func TestSkillCommand(t *testing.T) {
	m := gatewaytest.NewModel(echo)
	h := gatewaytest.New(t, m, gatewaytest.Options{})
	h.Say(owner, "/skill")
	h.Platform.Await(t, gatewaytest.Direct(owner).Chat, "the list", func(ps []gatewaytest.Post) bool {
		return len(ps) == 1 && strings.Contains(ps[0].Out.Text, "No skills are installed")
	})
	h.Say(owner, "/skill deploy the page")
	h.Final(owner, "echo: /skill deploy the page")
}
