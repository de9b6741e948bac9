package mockraft

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mockraft/mockraft/clients/go/api"
)

const (
	callTimeout   = 30 * time.Second
	verifyTimeout = 5 * time.Second
	pollInterval  = 20 * time.Millisecond
	journalLines  = 20
)

// Controller is a controller as one test uses it: what cannot be done ends the test. When the test ends, a stub or a
// fault that was never used fails it, and a test that failed shows the requests that the controller received.
type Controller struct {
	// Bootstrap is for controller.quorum.bootstrap.servers and bootstrap.controllers.
	Bootstrap string
	// ClusterID is the id with which brokers format their directories.
	ClusterID string
	// AdminURL is the address of the HTTP API and the live page.
	AdminURL string
	// API is the generated client of the whole HTTP API.
	API *api.Client

	t        testing.TB
	places   map[string]string // of stubs and faults, by their ids
	reported bool
}

// Start runs a controller for this test, with options of `mockraft serve`, and stops it when the test ends.
func Start(t testing.TB, options ...string) *Controller {
	t.Helper()
	process, err := Launch(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Errorf("mockraft stopped with %v", err)
		}
	})
	return process.For(t)
}

// For gives a shared controller to a test: without the stubs, faults and requests of the test before.
func (p *Process) For(t testing.TB) *Controller {
	t.Helper()
	return Attach(t, p.AdminURL, "")
}

// Attach gives a running controller to a test: without the stubs, faults and requests of the test before. The token is
// that of --admin-token-file; "" for none.
func Attach(t testing.TB, adminURL, token string) *Controller {
	t.Helper()
	client, err := api.NewClient(adminURL, api.WithHTTPClient(&http.Client{Timeout: callTimeout}),
		api.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{AdminURL: adminURL, API: client, t: t}
	health := read[api.Health](c)(client.GetHealth(context.Background()))
	c.Bootstrap, c.ClusterID = health.Bootstrap, health.ClusterID
	c.Reset()
	t.Cleanup(c.finish)
	return c
}

// Reset removes stubs, faults and requests, as between two tests.
func (c *Controller) Reset() {
	c.t.Helper()
	c.places = map[string]string{}
	read[nothing](c)(c.API.Reset(context.Background(), api.ResetJSONRequestBody{}))
}

// Verify fails the test unless exactly so many requests match; it waits up to five seconds for them. The failure lists
// the nearest requests, condition by condition.
func (c *Controller) Verify(count int, match Match) {
	c.t.Helper()
	wanted := int64(count)
	c.verify(api.Verify{Match: &match, Count: &wanted}, verifyTimeout)
}

// Wait waits until so many requests match, and fails the test after the timeout.
func (c *Controller) Wait(count int, match Match, timeout time.Duration) {
	c.t.Helper()
	wanted := int64(count)
	c.verify(api.Verify{Match: &match, AtLeast: &wanted}, timeout)
}

// Requests returns the newest 1,000 matching requests with their bodies, oldest first.
func (c *Controller) Requests(match Match) []api.ReceivedRequest {
	c.t.Helper()
	limit, summary := int64(1000), false
	body := api.Find{Match: &match, Limit: &limit, Summary: &summary}
	return read[api.Found](c)(c.API.FindRequests(context.Background(), body)).Requests
}

// Brokers returns the registered brokers, by id.
func (c *Controller) Brokers() []api.Broker {
	c.t.Helper()
	return read[api.Brokers](c)(c.API.ListBrokers(context.Background())).Brokers
}

// WaitForBrokers waits until so many brokers are registered and unfenced, and fails the test after the timeout.
func (c *Controller) WaitForBrokers(count int, timeout time.Duration) {
	c.t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		brokers, running := c.Brokers(), 0
		for _, each := range brokers {
			if !each.Fenced {
				running++
			}
		}
		if running >= count {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("after %s %d of %d brokers are registered and unfenced; the brokers: %+v", timeout, running, count, brokers)
		}
		time.Sleep(pollInterval)
	}
}

// ExpireSession ends a broker's session: it is fenced until its next heartbeat.
func (c *Controller) ExpireSession(broker int) {
	c.t.Helper()
	read[api.Broker](c)(c.API.ExpireBrokerSession(context.Background(), int32(broker)))
}

// Fault adds a network fault or a preset; `GET /v1/faults/kinds` lists them.
func (c *Controller) Fault(kind api.FaultKind, params api.FaultParams) api.Fault {
	c.t.Helper()
	body := api.NewFault{Kind: kind, Params: &params}
	found := read[api.Fault](c)(c.API.AddFault(context.Background(), body))
	c.places[found.ID] = callersPlace()
	return found
}

// AdvanceClock moves the time of a controller that was started with --virtual-clock.
func (c *Controller) AdvanceClock(by time.Duration) {
	c.t.Helper()
	read[api.ClockNow](c)(c.API.AdvanceClock(context.Background(), api.Advance{Ms: by.Milliseconds()}))
}

func (c *Controller) verify(body api.Verify, timeout time.Duration) {
	c.t.Helper()
	within := timeout.Milliseconds()
	body.WithinMs = &within
	waiting := *c.API
	waiting.Client = &http.Client{Timeout: timeout + callTimeout}
	found := read[api.Verification](c)(waiting.VerifyRequests(context.Background(), body))
	if !found.Verified {
		c.reported = true
		c.t.Fatal(*found.Report)
	}
}

// finish fails the test for unused stubs and faults and for what broke, in the server's words, shows the journal of a
// test that failed, and removes stubs and faults.
func (c *Controller) finish() {
	defer c.Reset()
	for _, each := range read[api.Complaints](c)(c.API.ListComplaints(context.Background())).Complaints {
		c.t.Errorf("%s%s", c.places[each.ID], each.Text)
	}
	if c.reported || !c.t.Failed() {
		return // the report of a verification has the journal
	}
	params := &api.ListRequestsParams{Limit: ptr(int64(journalLines))}
	for _, each := range read[api.Requests](c)(c.API.ListRequests(context.Background(), params)).Requests {
		c.t.Logf("request %d: %s v%d of client %s: served by %s, error %s", each.ID, each.API, each.APIVersion,
			text(each.ClientID), each.ServedBy, text(each.Error))
	}
}

type nothing struct{}

// read returns a function that decodes an answer of the API; a refusal, with the problem's text, ends the test.
func read[T any](c *Controller) func(*http.Response, error) T {
	c.t.Helper()
	return func(response *http.Response, err error) T {
		c.t.Helper()
		var answer T
		if err := decode(response, err, &answer); err != nil {
			c.t.Fatal(err)
		}
		return answer
	}
}

func decode(response *http.Response, err error, answer any) error {
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", response.Request.Method, response.Request.URL.Path, problem(body))
	}
	if len(body) == 0 {
		return nil
	}
	return json.Unmarshal(body, answer)
}

// problem returns the text of a refusal, with the fields that are wrong.
func problem(body []byte) string {
	var found api.Problem
	if json.Unmarshal(body, &found) != nil {
		return string(body)
	}
	places := []string{found.Detail}
	for _, each := range found.Errors {
		if each.Pointer != nil {
			places = append(places, "at "+*each.Pointer)
		}
	}
	return strings.Join(places, " ")
}

// callersPlace returns the line of a test that called this package, as `file.go:12: `.
func callersPlace() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "github.com/mockraft/mockraft/clients/go.") {
			return fmt.Sprintf("%s:%d: ", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

func ptr[T any](value T) *T { return &value }

func text(value *string) string {
	if value == nil {
		return "-"
	}
	return *value
}
