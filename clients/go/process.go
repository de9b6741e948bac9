// Package mockraft starts a mockraft controller for a Go test, or attaches to one that runs.
//
// [Start] is for a test of its own controller, [Launch] and [Process.For] share one between tests, [Attach] uses one
// that runs elsewhere. Package api has the generated client of the whole HTTP API.
package mockraft

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout   = 30 * time.Second
	stopTimeout    = 20 * time.Second
	logLinesInText = 20
)

var ready = regexp.MustCompile(`^mockraft ready bootstrap=(\S+) cluster_id=(\S+) node_id=\S+ admin=(\S+)`)

// Process is a controller in a process of its own, which does not outlive this one.
type Process struct {
	// Bootstrap is for controller.quorum.bootstrap.servers and bootstrap.controllers.
	Bootstrap string
	// ClusterID is the id with which brokers format their directories.
	ClusterID string
	// AdminURL is the address of the HTTP API and the live page.
	AdminURL string

	command *exec.Cmd
	stdin   io.Closer
	log     *processLog
}

// Launch runs `mockraft serve` on free ports, with these further options, and returns once it is ready; its simulated
// brokers send a heartbeat each 100 ms. Its log goes to the test that uses it, else to standard error. The
// environment's MOCKRAFT is the command, if it is set.
func Launch(ctx context.Context, options ...string) (*Process, error) {
	return launch(ctx, &processLog{}, options)
}

func launch(ctx context.Context, log *processLog, options []string) (*Process, error) {
	words := strings.Fields(os.Getenv("MOCKRAFT"))
	if len(words) == 0 {
		words = []string{"mockraft"}
	}
	words = append(words, "serve", "--port", "0", "--admin-port", "0", "--until-stdin-ends",
		"--broker-heartbeat-interval-ms", "100")
	words = append(words, options...)
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = log
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%w: pip install 'mockraft[admin]' (in a clone: '.[admin]'), or its path in the environment variable MOCKRAFT", err)
	}
	lines := make(chan string, 1)
	go func() {
		output := bufio.NewReader(stdout)
		line, _ := output.ReadString('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, output)
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	line, why := "", "ended"
	select {
	case line = <-lines:
	case <-ctx.Done():
		why = "was not ready: " + ctx.Err().Error()
	}
	found := ready.FindStringSubmatch(line)
	if found == nil {
		_ = command.Process.Kill()
		err := command.Wait()
		if why == "ended" && err != nil {
			why = "ended with " + err.Error()
		}
		return nil, fmt.Errorf("%s %s; its output:\n%s%s", strings.Join(words, " "), why, line, log.tail())
	}
	return &Process{Bootstrap: found[1], ClusterID: found[2], AdminURL: found[3], command: command, stdin: stdin, log: log}, nil
}

// Stop ends the process and waits, for 20 seconds at most; the error is nil for exit code 0.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })()
	defer p.stdin.Close()
	return p.command.Wait()
}

// processLog writes each line of a process's log to the test that uses it, else to standard error.
type processLog struct {
	mutex sync.Mutex
	t     testing.TB
	lines []string
	rest  string
}

// use writes to this test from now on; nil is for none.
func (l *processLog) use(t testing.TB) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.t = t
}

func (l *processLog) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	lines := strings.Split(l.rest+string(text), "\n")
	l.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		if l.t != nil {
			l.t.Log(line)
		} else {
			fmt.Fprintln(os.Stderr, line)
		}
		l.lines = append(l.lines, line)
	}
	l.lines = l.lines[max(0, len(l.lines)-logLinesInText):]
	return len(text), nil
}

func (l *processLog) tail() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Join(append(l.lines, l.rest), "\n")
}
