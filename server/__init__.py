"""The controller: Kafka's own decisions behind a listener, deterministic but for the one file that owns the sockets."""
