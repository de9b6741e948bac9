// Package mockraft runs a mockraft controller in a process of its own and asks its admin API.
package mockraft

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

var ready = regexp.MustCompile(`^mockraft ready bootstrap=(\S+) cluster_id=(\S+) node_id=\S+ admin=(\S+)`)

// Controller is a mockraft that runs. Bootstrap is what brokers connect to, Admin the URL of its API.
type Controller struct {
	Bootstrap, ClusterID, Admin string
	process                     *exec.Cmd
}

// Start runs the environment's MOCKRAFT (else mockraft) serve on free ports, with these further options.
func Start(options ...string) (*Controller, error) {
	command := strings.Fields(os.Getenv("MOCKRAFT"))
	if len(command) == 0 {
		command = []string{"mockraft"}
	}
	command = append(command, "serve", "--port", "0", "--admin-port", "0")
	process := exec.Command(command[0], append(command[1:], options...)...)
	process.Stderr = os.Stderr
	output, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	found := ready.FindStringSubmatch(line)
	if found == nil {
		_ = process.Process.Kill()
		_ = process.Wait()
		return nil, fmt.Errorf("mockraft did not start: %q", line)
	}
	return &Controller{Bootstrap: found[1], ClusterID: found[2], Admin: found[3], process: process}, nil
}

// Stop ends it and says how it ended: nil for exit code 0.
func (c *Controller) Stop() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.process.Wait()
}

// Send asks the admin API; answer, unless nil, gets the JSON. A refusal is an error with the problem's text.
func (c *Controller) Send(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, c.Admin+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s", method, path, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}
