package mockraft

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mockraft/mockraft/clients/go/api"
)

const (
	callTimeout    = 30 * time.Second
	verifyTimeout  = 5 * time.Second
	waitTimeout    = 10 * time.Second
	waitTimeoutMax = 10 * time.Minute
	pollInterval   = 20 * time.Millisecond
	journalLines   = 20
)

// Controller is a controller as one test uses it: what cannot be done ends the test. When the test ends, a stub or a
// fault that was never used fails it, and a test that failed shows the requests that the controller received.
//
// Methods that wait take a context, and wait until its deadline, else as long as they say. The others make one call,
// and end with the test.
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
	ctx      context.Context   // of calls that do not wait; done when the test has ended
	places   map[string]string // of stubs and faults, by their ids
	reported bool
}

// Start runs a controller for this test, with options of `mockraft serve`, and stops it when the test ends.
func Start(t testing.TB, options ...string) *Controller {
	t.Helper()
	process, err := launch(context.Background(), &processLog{t: t}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := process.Stop(context.Background()); err != nil {
			t.Errorf("mockraft stopped with %v", err)
		}
	})
	return Attach(t, process.AdminURL, "")
}

// For gives a shared controller to a test: without the stubs, faults and requests of the test before.
func (p *Process) For(t testing.TB) *Controller {
	t.Helper()
	p.log.use(t)
	t.Cleanup(func() { p.log.use(nil) })
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
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	c := &Controller{AdminURL: adminURL, API: client, t: t, ctx: ctx}
	health := read[api.Health](c)(client.GetHealth(ctx))
	c.Bootstrap, c.ClusterID = health.Bootstrap, health.ClusterID
	c.Reset()
	t.Cleanup(c.finish)
	return c
}

// Reset removes stubs, faults and requests, as between two tests.
func (c *Controller) Reset() {
	c.t.Helper()
	c.places = map[string]string{}
	read[nothing](c)(c.API.Reset(c.ctx, api.ResetJSONRequestBody{}))
}

// Verify fails the test unless exactly so many requests match; it waits up to five seconds for them. The failure lists
// the nearest requests, condition by condition.
func (c *Controller) Verify(ctx context.Context, count int, match Match) {
	c.t.Helper()
	c.verify(ctx, api.Verify{Match: &match, Count: ptr(int64(count))}, verifyTimeout)
}

// Wait waits until so many requests match, for ten seconds, and fails the test otherwise.
func (c *Controller) Wait(ctx context.Context, count int, match Match) {
	c.t.Helper()
	c.verify(ctx, api.Verify{Match: &match, AtLeast: ptr(int64(count))}, waitTimeout)
}

// Requests returns the newest 1,000 matching requests with their bodies, oldest first.
func (c *Controller) Requests(match Match) []api.ReceivedRequest {
	c.t.Helper()
	limit, summary := int64(1000), false
	body := api.Find{Match: &match, Limit: &limit, Summary: &summary}
	return read[api.Found](c)(c.API.FindRequests(c.ctx, body)).Requests
}

// Brokers returns the registered brokers, by id.
func (c *Controller) Brokers() []api.Broker {
	c.t.Helper()
	return read[api.Brokers](c)(c.API.ListBrokers(c.ctx)).Brokers
}

// WaitForBrokers waits until so many brokers are registered and unfenced, for ten seconds, and fails the test
// otherwise.
func (c *Controller) WaitForBrokers(ctx context.Context, count int) {
	c.t.Helper()
	c.runningBrokers(ctx, count)
}

// BootstrapServers returns the addresses of the registered brokers that are not fenced, for clients: host:port, with
// commas between. It waits for the first of them as WaitForBrokers does.
func (c *Controller) BootstrapServers(ctx context.Context) string {
	c.t.Helper()
	var servers []string
	for _, each := range c.runningBrokers(ctx, 1) {
		if len(each.Listeners) > 0 {
			servers = append(servers, net.JoinHostPort(each.Listeners[0].Host, strconv.Itoa(int(each.Listeners[0].Port))))
		}
	}
	return strings.Join(servers, ",")
}

func (c *Controller) runningBrokers(ctx context.Context, count int) []api.Broker {
	c.t.Helper()
	ctx, cancel := within(ctx, waitTimeout)
	defer cancel()
	for {
		var running []api.Broker
		var fenced []string
		for _, each := range c.Brokers() {
			if each.Fenced {
				fenced = append(fenced, strconv.Itoa(int(each.BrokerID)))
			} else {
				running = append(running, each)
			}
		}
		if len(running) >= count {
			return running
		}
		select {
		case <-ctx.Done():
			hint := ""
			if len(running)+len(fenced) < count {
				hint = fmt.Sprintf("; simulated ones: --brokers %d", count)
			}
			c.t.Fatalf("%d of %d brokers are registered and unfenced (fenced: %s): %v%s",
				len(running), count, cmp.Or(strings.Join(fenced, ", "), "none"), ctx.Err(), hint)
		case <-time.After(pollInterval):
		}
	}
}

// AdvanceClock moves the time of a controller that was started with --virtual-clock.
func (c *Controller) AdvanceClock(by time.Duration) {
	c.t.Helper()
	read[api.ClockNow](c)(c.API.AdvanceClock(c.ctx, api.Advance{Ms: by.Milliseconds()}))
}

// verify waits until the deadline of the context, else for this time. The server ends the wait, as it has the report.
func (c *Controller) verify(ctx context.Context, body api.Verify, timeout time.Duration) {
	c.t.Helper()
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(max(0, time.Until(deadline)), waitTimeoutMax)
	}
	body.WithinMs = ptr(timeout.Milliseconds())
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+callTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if ctx.Err() == context.Canceled {
			cancel()
		}
	})()
	waiting := *c.API
	waiting.Client = &http.Client{}
	found := read[api.Verification](c)(waiting.VerifyRequests(call, body))
	if !found.Verified {
		c.reported = true
		c.t.Fatal(*found.Report)
	}
}

// finish fails the test for unused stubs and faults and for what broke, in the server's words, shows the journal of a
// test that failed, and removes stubs and faults.
func (c *Controller) finish() {
	c.t.Helper()
	defer c.Reset()
	for _, each := range read[api.Complaints](c)(c.API.ListComplaints(c.ctx)).Complaints {
		c.t.Errorf("%s%s", c.places[each.ID], each.Text)
	}
	if c.reported || !c.t.Failed() {
		return // the report of a verification has the journal
	}
	params := &api.ListRequestsParams{Limit: ptr(int64(journalLines))}
	for _, each := range read[api.Requests](c)(c.API.ListRequests(c.ctx, params)).Requests {
		c.t.Logf("request %d: %s v%d of client %s: served by %s, error %s", each.ID, each.API, each.APIVersion,
			text(each.ClientID), each.ServedBy, text(each.Error))
	}
}

// within returns a context with its own deadline, else one after this time.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
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
		if each.Pointer != nil && *each.Pointer != "#" { // the body as a whole
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
