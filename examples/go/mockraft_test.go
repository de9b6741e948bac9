package mockraft

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

const unsupportedVersion = 35

// apiVersions asks for ApiVersions v0 as a client of this name, and gives the error code of the answer.
func apiVersions(t *testing.T, bootstrap, clientID string) int16 {
	t.Helper()
	connection, err := net.DialTimeout("tcp", bootstrap, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(20 * time.Second))
	frame := []byte{0, 18, 0, 0, 0, 0, 0, 7, 0, byte(len(clientID))}
	frame = append(frame, clientID...)
	sent := append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	if _, err := connection.Write(sent); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 10)
	if _, err := io.ReadFull(connection, head); err != nil {
		t.Fatal(err)
	}
	if correlationID := binary.BigEndian.Uint32(head[4:8]); correlationID != 7 {
		t.Fatalf("the answer is to request %d", correlationID)
	}
	return int16(binary.BigEndian.Uint16(head[8:10]))
}

func start(t *testing.T, options ...string) *Controller {
	t.Helper()
	controller, err := Start(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controller.Stop(); err != nil {
			t.Error(err)
		}
	})
	return controller
}

func send(t *testing.T, c *Controller, method, path string, body object) object {
	t.Helper()
	answer := object{}
	if err := c.Send(method, path, body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestAStubServesOneClientOnce(t *testing.T) {
	controller := start(t)
	match := object{"api": "ApiVersions", "clientId": "go"}
	send(t, controller, "POST", "/v1/stubs", object{
		"match":   match,
		"trigger": object{"once": true},
		"actions": []object{{"injectError": "UNSUPPORTED_VERSION"}},
	})
	got := []int16{}
	for _, clientID := range []string{"other", "go", "go"} {
		got = append(got, apiVersions(t, controller.Bootstrap, clientID))
	}
	if got[0] != 0 || got[1] != unsupportedVersion || got[2] != 0 {
		t.Errorf("error codes %v", got)
	}
	verified := send(t, controller, "POST", "/v1/requests/verify", object{"match": match, "count": 2})
	if verified["verified"] != true {
		t.Error(verified["report"])
	}
}

func TestTheControllersTimeIsTheTests(t *testing.T) {
	controller := start(t, "--virtual-clock")
	before := send(t, controller, "POST", "/v1/clock/advance", object{"ms": 0})
	after := send(t, controller, "POST", "/v1/clock/advance", object{"ms": 9000})
	if passed := after["nowMs"].(float64) - before["nowMs"].(float64); passed != 9000 {
		t.Errorf("%v ms passed", passed)
	}
}

func TestARefusalSaysWhichFieldIsWrong(t *testing.T) {
	controller := start(t)
	err := controller.Send("POST", "/v1/stubs", object{"trigger": object{"times": 0}}, nil)
	if err == nil || !strings.Contains(err.Error(), "#/trigger/times") {
		t.Errorf("got %v", err)
	}
}
