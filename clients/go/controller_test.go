package mockraft_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	mockraft "github.com/mockraft/mockraft/clients/go"
	"github.com/mockraft/mockraft/clients/go/api"
)

const unsupportedVersion = 35

var shared *mockraft.Process

func TestMain(m *testing.M) {
	process, err := mockraft.Launch(context.Background(), "--brokers", "1")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = process
	code := m.Run()
	if err := process.Stop(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// apiVersions asks for ApiVersions v0 as a client of this name, and returns the error code of the answer.
func apiVersions(t *testing.T, bootstrap, clientID string) int16 {
	t.Helper()
	connection, err := net.DialTimeout("tcp", bootstrap, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	frame := append([]byte{0, 18, 0, 0, 0, 0, 0, 7, 0, byte(len(clientID))}, clientID...)
	if _, err := connection.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 10)
	if _, err := io.ReadFull(connection, head); err != nil {
		t.Fatal(err)
	}
	return int16(binary.BigEndian.Uint16(head[8:10]))
}

func TestAStubServesOneClientOnce(t *testing.T) {
	controller := shared.For(t)
	match := mockraft.Match{API: "ApiVersions", ClientID: "go"}
	stub := controller.Stub(match, mockraft.Once(), mockraft.InjectError("UNSUPPORTED_VERSION"))
	got := []int16{}
	for _, clientID := range []string{"other", "go", "go"} {
		got = append(got, apiVersions(t, controller.Bootstrap, clientID))
	}
	if got[0] != 0 || got[1] != unsupportedVersion || got[2] != 0 {
		t.Errorf("error codes %v", got)
	}
	if stub.Calls() != 1 {
		t.Errorf("%d calls", stub.Calls())
	}
	controller.Verify(context.Background(), 2, match)
	served := controller.Requests(match)
	if len(served) != 2 || *served[0].Error != "UNSUPPORTED_VERSION" || served[1].Error != nil {
		t.Errorf("requests %+v", served)
	}
}

func TestEveryTriggerAndActionIsAccepted(t *testing.T) {
	controller := shared.For(t)
	match := mockraft.Match{API: []string{"Vote", "BeginQuorumEpoch"}, BrokerID: map[string]any{"gte": 5}}
	for _, trigger := range []mockraft.StubOption{mockraft.Once(), mockraft.Times(2), mockraft.OnCall(3)} {
		for _, action := range []mockraft.StubOption{
			mockraft.InjectError("NOT_CONTROLLER"), mockraft.Drop(), mockraft.DisconnectOn(),
			mockraft.DelayOn(time.Second), mockraft.Answer(map[string]any{"errorCode": 1}),
			mockraft.ChangeResponse(map[string]any{"errorCode": 1}),
		} {
			controller.Stub(match, trigger, action).Remove()
			controller.Stub(match, action).Remove()
		}
	}
}

func TestAFaultIsWhatABrokerGets(t *testing.T) {
	controller := shared.For(t)
	stale := controller.StaleBrokerEpoch(mockraft.OnBroker(1))
	heartbeats := mockraft.Match{API: "BrokerHeartbeat", BrokerID: 1}
	controller.Wait(context.Background(), 2, heartbeats) // one may have come before the fault
	if stale.Fired() == 0 {
		t.Error("the fault did not act")
	}
	received := controller.Requests(heartbeats)
	if got := received[len(received)-1].Error; got == nil || *got != "STALE_BROKER_EPOCH" {
		t.Errorf("error %v", got)
	}
	if brokers := controller.Brokers(); len(brokers) != 1 || brokers[0].BrokerID != 1 {
		t.Errorf("brokers %+v", brokers)
	}
}

func TestAFenceLastsUntilItIsRemoved(t *testing.T) {
	controller := shared.For(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	controller.WaitForBrokers(ctx, 1)
	fence := controller.Fence(1)
	if !controller.Brokers()[0].Fenced {
		t.Error("not fenced")
	}
	fence.Remove()
	connection, err := net.Dial("tcp", controller.BootstrapServers(ctx))
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
}

func TestEveryParameterOfAFaultIsAccepted(t *testing.T) {
	controller := shared.For(t)
	elsewhere := mockraft.OnConnections(api.ConnectionMatch{ClientID: "nobody"})
	for _, fault := range []*mockraft.Fault{
		controller.Latency(mockraft.WithLatency(time.Second), mockraft.WithJitter(time.Millisecond), elsewhere),
		controller.Corrupt(mockraft.WithDirection("upstream"), mockraft.WithProbability(0.5), elsewhere),
		controller.Throttle(mockraft.WithThrottle(time.Second), mockraft.OnBroker(7)),
		controller.RegistrationNeverSucceeds(mockraft.WithError("NOT_CONTROLLER"), mockraft.OnBroker(7)),
	} {
		fault.Remove()
	}
}

func TestTheClockIsTheTests(t *testing.T) {
	controller := mockraft.Start(t, "--virtual-clock")
	before := now(t, controller)
	controller.AdvanceClock(9 * time.Second)
	if passed := now(t, controller) - before; passed != 9000 {
		t.Errorf("%d ms passed", passed)
	}
}

func TestAnUnusedStubFailsTheTest(t *testing.T) {
	failures := run(t, func(inner testing.TB) {
		controller := shared.For(inner)
		controller.Stub(mockraft.Match{API: "Vote"}, mockraft.Drop())
		apiVersions(t, controller.Bootstrap, "other")
	})
	if !regexp.MustCompile(`controller_test.go:\d+: stub stub-\d+ was never used: Vote`).MatchString(failures) ||
		!strings.Contains(failures, "ApiVersions v0 of client other: served by controller") {
		t.Errorf("got %q", failures)
	}
}

func TestAFaultThatMeetsNothingFailsTheTest(t *testing.T) {
	failures := run(t, func(inner testing.TB) {
		shared.For(inner).LostHeartbeats(mockraft.OnBroker(7))
	})
	if !regexp.MustCompile(`controller_test.go:\d+: fault lost_heartbeats-\d+ never met anything`).MatchString(failures) ||
		!strings.Contains(failures, "broker 7 is not registered") {
		t.Errorf("got %q", failures)
	}
}

func TestAFailedVerificationShowsTheRequests(t *testing.T) {
	failures := run(t, func(inner testing.TB) {
		controller := shared.For(inner)
		apiVersions(t, controller.Bootstrap, "near")
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		controller.Wait(ctx, 1, mockraft.Match{API: "ApiVersions", ClientID: "far"})
	})
	if !strings.Contains(failures, "wanted 'far', there was 'near'") || strings.Count(failures, "ApiVersions v0  →") != 1 {
		t.Errorf("got %q", failures)
	}
}

func TestARefusalNamesTheField(t *testing.T) {
	failures := run(t, func(inner testing.TB) {
		shared.For(inner).Stub(mockraft.Match{API: "BrokerHeartbeet"}, mockraft.Drop())
	})
	if !strings.Contains(failures, "did you mean BrokerHeartbeat") || !strings.Contains(failures, "#/match/api") {
		t.Errorf("got %q", failures)
	}
}

func TestAWrongOptionIsAnErrorOfLaunch(t *testing.T) {
	_, err := mockraft.Launch(context.Background(), "--broker", "1")
	if err == nil || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), "--brokers") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogOfAControllerIsTheTests(t *testing.T) {
	logs := run(t, func(inner testing.TB) { mockraft.Start(inner, "--brokers", "1", "--log-level", "debug") })
	if !strings.Contains(logs, "mockraft") || !strings.Contains(logs, "stopping") {
		t.Errorf("got %q", logs)
	}
}

func now(t *testing.T, controller *mockraft.Controller) int64 {
	t.Helper()
	response, err := controller.API.GetClock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var clock api.ClockNow
	if err := json.NewDecoder(response.Body).Decode(&clock); err != nil {
		t.Fatal(err)
	}
	return clock.NowMs
}

// recorder is a test inside a test, whose failures are text.
type recorder struct {
	testing.TB
	failures []string
	logs     []string
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Failed() bool                 { return len(r.failures) > 0 }
func (r *recorder) Cleanup(cleanup func())       { r.cleanups = append(r.cleanups, cleanup) }
func (r *recorder) Log(a ...any)                 { r.logs = append(r.logs, fmt.Sprint(a...)) }
func (r *recorder) Logf(format string, a ...any) { r.logs = append(r.logs, fmt.Sprintf(format, a...)) }
func (r *recorder) Errorf(format string, a ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, a...))
}
func (r *recorder) Fatal(a ...any) {
	r.failures = append(r.failures, fmt.Sprint(a...))
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, a ...any) { r.Fatal(fmt.Sprintf(format, a...)) }

// run runs a test inside a test and returns what it reported.
func run(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	inner := &recorder{TB: t}
	call := func(part func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			part()
		}()
		<-done
	}
	call(func() { test(inner) })
	for index := len(inner.cleanups) - 1; index >= 0; index-- {
		call(inner.cleanups[index])
	}
	return strings.Join(append(inner.failures, inner.logs...), "\n")
}
