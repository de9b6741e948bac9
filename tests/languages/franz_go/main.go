// Commits and aborts transactions with franz-go's default settings, and moves records with their offsets.
//
// Arguments: the group protocol (classic or consumer) and the bootstrap servers. Topics: orders and bills, of one
// partition each. It prints the bills.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// produce writes the orders in transactions of one producer; every second one is aborted.
func produce(ctx context.Context, seeds []string) {
	producer, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.TransactionalID("go"), kgo.DefaultProduceTopic("orders"))
	check(err)
	defer producer.Close()
	for number := 0; number < 4; number++ {
		check(producer.BeginTransaction())
		record := kgo.StringRecord(fmt.Sprintf("order %d", number))
		check(producer.ProduceSync(ctx, record).FirstErr())
		check(producer.EndTransaction(ctx, number%2 == 0))
	}
}

// move reads the committed orders, and writes the bills together with the offsets.
func move(ctx context.Context, protocol string, seeds []string, count int) {
	if protocol == "consumer" {
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true)
	}
	session, err := kgo.NewGroupTransactSession(
		kgo.WithContext(ctx),
		kgo.SeedBrokers(seeds...),
		kgo.TransactionalID("mover"),
		kgo.DefaultProduceTopic("bills"),
		kgo.ConsumerGroup("movers"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	check(err)
	defer session.Close()
	for moved := 0; moved < count; {
		fetches := session.PollFetches(ctx)
		check(fetches.Err())
		check(session.Begin())
		fetches.EachRecord(func(record *kgo.Record) {
			bill := kgo.StringRecord("bill for " + string(record.Value))
			check(session.ProduceSync(ctx, bill).FirstErr())
			moved++
		})
		committed, err := session.End(ctx, kgo.TryCommit)
		check(err)
		if !committed {
			log.Fatal("the transaction was aborted")
		}
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seeds, count := os.Args[2:], 2
	produce(ctx, seeds)
	move(ctx, os.Args[1], seeds, count)
	reader, err := kgo.NewClient(
		kgo.SeedBrokers(seeds...), kgo.ConsumeTopics("bills"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer reader.Close()
	for read := 0; read < count; {
		fetches := reader.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			read++
		})
	}
}
