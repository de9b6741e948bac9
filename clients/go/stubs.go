package mockraft

import (
	"strings"
	"time"

	"github.com/mockraft/mockraft/clients/go/api"
)

type (
	// Match selects requests. A condition is one value, a list (one of them) or a map of operators.
	Match = api.Match
	// StubOption is a step of a stub, or chooses which of the matching requests it serves.
	StubOption func(*api.NewStub)
	// FaultOption is a parameter of a fault.
	FaultOption func(*api.NewFault)
)

// Stub is a stub that was added.
type Stub struct {
	// ID is its id in the HTTP API.
	ID string

	controller *Controller
}

// Stub serves matching requests, all of them unless an option such as Once chooses some, with steps in their order.
func (c *Controller) Stub(match Match, options ...StubOption) *Stub {
	c.t.Helper()
	added := api.NewStub{Match: &match}
	for _, option := range options {
		option(&added)
	}
	return c.AddStub(added)
}

// AddStub adds a stub with any of its fields: a scenario, a priority, a name.
func (c *Controller) AddStub(added api.NewStub) *Stub {
	c.t.Helper()
	found := read[api.Stub](c)(c.API.AddStub(c.ctx, added))
	c.places[found.ID] = callersPlace()
	return &Stub{ID: found.ID, controller: c}
}

// Calls returns how often the stub has served.
func (s *Stub) Calls() int {
	s.controller.t.Helper()
	return int(read[api.Stub](s.controller)(s.controller.API.GetStub(s.controller.ctx, s.ID)).Calls)
}

// Remove removes the stub; it need not have been used then.
func (s *Stub) Remove() {
	s.controller.t.Helper()
	read[nothing](s.controller)(s.controller.API.RemoveStub(s.controller.ctx, s.ID))
}

// Fault is a fault that was switched on.
type Fault struct {
	// ID is its id in the HTTP API.
	ID string

	controller *Controller
}

// Fault switches a network fault or a preset on, by its kind; each kind is a method, too.
func (c *Controller) Fault(kind api.FaultKind, options ...FaultOption) *Fault {
	c.t.Helper()
	added := api.NewFault{Kind: kind, Params: &api.FaultParams{}}
	for _, option := range options {
		option(&added)
	}
	found := read[api.Fault](c)(c.API.AddFault(c.ctx, added))
	c.places[found.ID] = callersPlace()
	return &Fault{ID: found.ID, controller: c}
}

// Fired returns how often the fault has acted.
func (f *Fault) Fired() int {
	f.controller.t.Helper()
	return int(read[api.Fault](f.controller)(f.controller.API.GetFault(f.controller.ctx, f.ID)).Fired)
}

// Remove ends the fault; it need not have acted then.
func (f *Fault) Remove() {
	f.controller.t.Helper()
	read[nothing](f.controller)(f.controller.API.RemoveFault(f.controller.ctx, f.ID))
}

// OnConnections limits a network fault to these connections.
func OnConnections(match api.ConnectionMatch) FaultOption {
	return func(f *api.NewFault) { f.Match = &match }
}

// Once serves the first matching request only.
func Once() StubOption { return triggered(api.Trigger{Once: ptr(true)}) }

// Times serves the first matching requests, up to this number.
func Times(n int) StubOption { return triggered(api.Trigger{Times: ptr(int64(n))}) }

// OnCall serves the matching request of this number, from 1.
func OnCall(n int) StubOption { return triggered(api.Trigger{OnCall: ptr(int64(n))}) }

// InjectError answers with an error by Kafka's name, such as NOT_CONTROLLER, and a message, if one is given; the
// controller does not see the request. If the match selects a topic or another entity, the error is for that alone.
func InjectError(name string, message ...string) StubOption {
	action := api.Action{InjectError: name}
	if len(message) > 0 {
		action.Message = ptr(strings.Join(message, " "))
	}
	return Do(action)
}

// Answer answers with these fields of the response, the others at their defaults.
func Answer(fields map[string]any) StubOption { return Do(api.Action{Answer: fields}) }

// ChangeResponse lets the controller answer, and changes fields of its answer by path.
func ChangeResponse(fields map[string]any) StubOption {
	return Do(api.Action{Change: &api.Change{Response: fields}})
}

// DelayOn delays the answer.
func DelayOn(delay time.Duration) StubOption { return Do(api.Action{DelayOn: delay.Milliseconds()}) }

// Drop sends no answer.
func Drop() StubOption { return Do(api.Action{Drop: ptr(true)}) }

// DisconnectOn closes the connection.
func DisconnectOn() StubOption { return Do(api.Action{DisconnectOn: ptr(true)}) }

// Do is any other step.
func Do(action api.Action) StubOption {
	return func(s *api.NewStub) { s.Actions = append(s.Actions, action) }
}

func triggered(by api.Trigger) StubOption {
	return func(s *api.NewStub) { s.Trigger = &by }
}
