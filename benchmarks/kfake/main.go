package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	if err != nil {
		panic(err)
	}
	fmt.Println(c.ListenAddrs()[0])
	done := make(chan os.Signal, 1)
	signal.Notify(done, syscall.SIGTERM)
	<-done
	c.Close()
}
