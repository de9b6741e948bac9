// Package mockraft starts a mockraft controller for a Go test, or attaches to one that runs.
//
// [Start] is for a test of its own controller, [Launch] and [Process.For] share one between tests, [Attach] uses one
// that runs elsewhere. Package api has the generated client of the whole HTTP API.
package mockraft

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 20 * time.Second
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
}

// Launch runs `mockraft serve` on free ports, with these further options. The environment's MOCKRAFT is the command,
// if it is set.
func Launch(options ...string) (*Process, error) {
	words := strings.Fields(os.Getenv("MOCKRAFT"))
	if len(words) == 0 {
		words = []string{"mockraft"}
	}
	words = append(words, "serve", "--port", "0", "--admin-port", "0", "--until-stdin-ends")
	command := exec.Command(words[0], append(words[1:], options...)...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("mockraft: %w (the extra admin of the Python package mockraft is needed, or MOCKRAFT with its command)", err)
	}
	process := &Process{command: command, stdin: stdin}
	lines := make(chan string, 1)
	go func() {
		output := bufio.NewReader(stdout)
		line, _ := output.ReadString('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, output)
	}()
	line := ""
	select {
	case line = <-lines:
	case <-time.After(startTimeout):
	}
	found := ready.FindStringSubmatch(line)
	if found == nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return nil, fmt.Errorf("mockraft did not start; its output is %q", line)
	}
	process.Bootstrap, process.ClusterID, process.AdminURL = found[1], found[2], found[3]
	return process, nil
}

// Stop ends the process; the error is nil for exit code 0.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(stopTimeout, func() { _ = p.command.Process.Kill() })
	defer kill.Stop()
	defer p.stdin.Close()
	return p.command.Wait()
}
