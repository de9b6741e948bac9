package operator

import (
	"context"
	"fmt"
	"testing"
	"time"

	mockraft "github.com/mockraft/mockraft/clients/go"
)

func TestABrokerThatIsCutOffIsReportedAndComesBack(t *testing.T) {
	controller := mockraft.Start(t, "--brokers", "2")
	controller.WaitForBrokers(t.Context(), 2)
	changes := watch(t, controller)
	expect(t, changes, Change{1, Running}, Change{2, Running})

	refused := controller.Stub(
		mockraft.Match{API: "BrokerHeartbeat", BrokerID: 2}, mockraft.InjectError("NOT_CONTROLLER"))
	controller.ExpireSession(2)
	expect(t, changes, Change{2, Fenced})

	controller.Wait(t.Context(), 1, mockraft.Match{API: "BrokerHeartbeat", BrokerID: 2})
	refused.Remove()
	expect(t, changes, Change{2, Running})
}

// watch runs Watch until the test ends; it asks broker 1.
func watch(t *testing.T, controller *mockraft.Controller) <-chan Change {
	t.Helper()
	listener := controller.Brokers()[0].Listeners[0]
	client, err := Connect(fmt.Sprintf("%s:%d", listener.Host, listener.Port))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(client.Close)
	t.Cleanup(stop)
	changes := make(chan Change, 10)
	go Watch(ctx, client, 20*time.Millisecond, changes)
	return changes
}

// expect receives these changes, in any order.
func expect(t *testing.T, changes <-chan Change, wanted ...Change) {
	t.Helper()
	missing := map[Change]bool{}
	for _, each := range wanted {
		missing[each] = true
	}
	for len(missing) > 0 {
		select {
		case change := <-changes:
			if !missing[change] {
				t.Fatalf("unexpected %v; waiting for %v", change, missing)
			}
			delete(missing, change)
		case <-time.After(20 * time.Second):
			t.Fatalf("no change; waiting for %v", missing)
		}
	}
}
