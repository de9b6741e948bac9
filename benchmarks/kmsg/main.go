// Times franz-go's kmsg on the messages of benchmarks/codec.py.
//
// A line of stdin is a message: its name, API key, version and bytes in hex. The result is a JSON object with the
// nanoseconds of decoding and encoding; a message that kmsg does not have, or writes otherwise, is left out.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	rounds     = 15
	roundNanos = 4_000_000
)

type message interface {
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
	SetVersion(int16)
}

func named(name string, key, version int16) message {
	var found message
	if strings.HasSuffix(name, "Request") {
		found = kmsg.RequestForKey(key)
	} else if strings.HasSuffix(name, "Response") {
		found = kmsg.ResponseForKey(key)
	}
	if found != nil {
		found.SetVersion(version)
	}
	return found
}

func least(once func()) float64 {
	times, taken := 1, time.Duration(0)
	for ; taken < roundNanos; times *= 2 {
		began := time.Now()
		for range times {
			once()
		}
		taken = time.Since(began)
	}
	best := float64(taken)
	for range rounds {
		began := time.Now()
		for range times / 2 {
			once()
		}
		best = min(best, float64(time.Since(began)))
	}
	return best / float64(times/2)
}

func main() {
	results := map[string]map[string]float64{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		name := words[0]
		key, _ := strconv.Atoi(words[1])
		version, _ := strconv.Atoi(words[2])
		data, err := hex.DecodeString(words[3])
		if err != nil {
			panic(err)
		}
		read := named(name, int16(key), int16(version))
		if read == nil || read.ReadFrom(data) != nil || !bytes.Equal(read.AppendTo(nil), data) {
			continue
		}
		var buffer []byte
		results[fmt.Sprintf("%s.v%d", name, version)] = map[string]float64{
			"decode": least(func() {
				fresh := named(name, int16(key), int16(version))
				if fresh.ReadFrom(data) != nil {
					panic(name)
				}
			}),
			"encode": least(func() { buffer = read.AppendTo(buffer[:0]) }),
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		panic(err)
	}
}
