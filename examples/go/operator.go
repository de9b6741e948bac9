// Package operator is an example: the part of a Kafka operator that watches which brokers have registered.
package operator

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// State is a broker's state as clients see it.
type State string

// The states of a broker.
const (
	Running      State = "running"
	Fenced       State = "fenced"
	Unregistered State = "unregistered"
)

// Change is the new state of a broker.
type Change struct {
	Broker int32
	State  State
}

// Connect returns a client that asks for fenced brokers, too (DescribeCluster 2), a version that franz-go would not use by itself.
func Connect(seeds ...string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MaxVersions(nil))
}

// Watch sends each change of the brokers' states, until the context ends. It asks at this interval, and asks again after
// an error.
func Watch(ctx context.Context, client *kgo.Client, interval time.Duration, changes chan<- Change) {
	known := map[int32]State{}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if current, err := brokers(ctx, client); err == nil {
			for id := range known {
				if _, registered := current[id]; !registered {
					current[id] = Unregistered
				}
			}
			for id, state := range current {
				if known[id] != state {
					changes <- Change{id, state}
				}
			}
			known = current
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// brokers returns the states of all registered brokers (DescribeCluster with fenced brokers, KIP-1073).
func brokers(ctx context.Context, client *kgo.Client) (map[int32]State, error) {
	request := kmsg.NewPtrDescribeClusterRequest()
	request.IncludeFencedBrokers = true
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	found := map[int32]State{}
	for _, broker := range response.Brokers {
		found[broker.NodeID] = Running
		if broker.IsFenced {
			found[broker.NodeID] = Fenced
		}
	}
	return found, nil
}
