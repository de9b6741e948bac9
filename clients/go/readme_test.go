package mockraft_test

import (
	"testing"
	"time"

	mockraft "github.com/mockraft/mockraft/clients/go"
)

func TestABrokerRetriesARefusedHeartbeat(t *testing.T) {
	controller := mockraft.Start(t, "--brokers", "1")
	heartbeats := mockraft.Match{API: "BrokerHeartbeat", BrokerID: 1}
	refused := controller.Stub(heartbeats, mockraft.Once(), mockraft.InjectError("NOT_CONTROLLER"))

	controller.Wait(2, heartbeats, 10*time.Second)
	controller.WaitForBrokers(1, 10*time.Second)

	if refused.Calls() != 1 {
		t.Errorf("the stub served %d requests", refused.Calls())
	}
}
