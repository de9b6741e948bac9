package mockraft_test

import (
	"testing"

	mockraft "github.com/mockraft/mockraft/clients/go"
)

func TestABrokerRetriesARefusedHeartbeat(t *testing.T) {
	controller := mockraft.Start(t, "--brokers", "1")
	heartbeats := mockraft.Match{API: "BrokerHeartbeat", BrokerID: 1}
	refused := controller.Stub(heartbeats, mockraft.Once(), mockraft.InjectError("NOT_CONTROLLER"))

	controller.Wait(t.Context(), 10, heartbeats) // one each 100 ms; the first came before the stub
	controller.WaitForBrokers(t.Context(), 1)

	if refused.Calls() != 1 {
		t.Errorf("the stub served %d requests", refused.Calls())
	}
}
