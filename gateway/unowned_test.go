package gateway_test

import (
	"testing"

	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
)

// TestTheFirstPersonIsToldHowToOwnIt: where the platform knows no claim link,
// none is spoken of.
func TestTheFirstPersonIsToldHowToOwnIt(t *testing.T) {
	h := gatewaytest.New(t, gatewaytest.NewModel(gatewaytest.Say("never")), gatewaytest.Options{
		Config: func(c *gateway.Config) { c.Access = gateway.AccessConfig{Pairing: true, Groups: "mention"} },
	})
	someone := chat.User{ID: "test:7", Name: "Eve"}
	h.Say(someone, "hello")
	want := "I have no owner yet. If that is you, put `test:7` into `access.admins` of the configuration (or into `PARLEY_ALLOW`) and start parley again."
	h.Final(someone, want)
}
