"""Simulated brokers: clients of a controller that behave like Kafka's brokers of the default release on the wire.

A :class:`~mockraft.brokers.broker.SimulatedBroker` talks to any KRaft controller over sockets and never imports the
controller's code. It registers, replicates ``__cluster_metadata`` as an observer, sends heartbeats and shuts down; with
``serve_clients`` it also has listeners and answers producers, consumers and admin clients.

A broker is built as the controller is: `node` takes events and the time and returns effects, `shell` performs them.

* `kernel` has the requests, timers and effects of one broker; `core` adds its config, lifecycle, metadata and logs.
* `lifecycle` is Kafka's BrokerLifecycleManager as a function from (state, event) to (state, orders). The states are
  Kafka's BrokerState: NOT_RUNNING, STARTING, RECOVERY, RUNNING, PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN.
* `metadata.observer` is the follower side of KafkaRaftClient: it produces the next request and processes the response.
* `metadata.metadata_view` and `image` hold committed records only. The view is small, so that ten thousand brokers fit
  into a process; a broker that serves clients has the whole image.
* `channel` finds the active controller and repeats requests, as Kafka's NodeToControllerChannelManager does.

Components (`core.Component`) are started, notified of metadata and state changes, and closed together; an exception of
one ends the broker. An error that would end a real broker's process ends only the simulated broker: see `End`,
`SimulatedBroker.end_reason` and `SimulatedBroker.fault`.
"""
