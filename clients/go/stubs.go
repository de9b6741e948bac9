package mockraft

import (
	"context"
	"time"

	"github.com/mockraft/mockraft/clients/go/api"
)

type (
	// Match selects requests. A condition is one value, a list (one of them) or a map of operators.
	Match = api.Match
	// Action is a step of a stub.
	Action = api.Action
	// Trigger chooses which of the matching requests a stub serves; nil for all of them.
	Trigger = *api.Trigger
)

// Stub is a stub that was added.
type Stub struct {
	// ID is its id in the HTTP API.
	ID string

	controller *Controller
}

// Stub serves matching requests with actions, in their order.
func (c *Controller) Stub(match Match, trigger Trigger, actions ...Action) *Stub {
	c.t.Helper()
	return c.AddStub(api.NewStub{Match: &match, Trigger: trigger, Actions: actions})
}

// AddStub adds a stub with any of its fields: a scenario, a priority, a name.
func (c *Controller) AddStub(added api.NewStub) *Stub {
	c.t.Helper()
	found := read[api.Stub](c)(c.API.AddStub(context.Background(), added))
	c.places[found.ID] = callersPlace()
	return &Stub{ID: found.ID, controller: c}
}

// Calls returns how often the stub has served.
func (s *Stub) Calls() int {
	s.controller.t.Helper()
	found := read[api.Stub](s.controller)(s.controller.API.GetStub(context.Background(), s.ID))
	return int(found.Calls)
}

// Remove removes the stub; it need not have been used then.
func (s *Stub) Remove() {
	s.controller.t.Helper()
	read[nothing](s.controller)(s.controller.API.RemoveStub(context.Background(), s.ID))
}

// Once fires for the first matching request.
func Once() Trigger { return &api.Trigger{Once: ptr(true)} }

// Times fires for the first matching requests, up to this number.
func Times(n int) Trigger { return &api.Trigger{Times: ptr(int64(n))} }

// OnCall fires for the matching request of this number, from 1.
func OnCall(n int) Trigger { return &api.Trigger{OnCall: ptr(int64(n))} }

// EveryTime fires for every matching request.
func EveryTime() Trigger { return &api.Trigger{EveryTime: ptr(true)} }

// InjectError answers with an error by Kafka's name, such as NOT_CONTROLLER; the controller does not see the request.
func InjectError(name string) Action { return Action{InjectError: name} }

// Answer answers with these fields of the response, the others at their defaults.
func Answer(fields map[string]any) Action { return Action{Answer: fields} }

// ChangeResponse lets the controller answer, and changes fields of its answer by path.
func ChangeResponse(fields map[string]any) Action {
	return Action{Change: &api.Change{Response: fields}}
}

// DelayOn delays the answer.
func DelayOn(delay time.Duration) Action { return Action{DelayOn: delay.Milliseconds()} }

// Drop sends no answer.
func Drop() Action { return Action{Drop: ptr(true)} }

// DisconnectOn closes the connection.
func DisconnectOn() Action { return Action{DisconnectOn: ptr(true)} }
