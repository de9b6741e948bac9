"""Kafka's configuration: which keys there are, what their values may be, and where a value comes from."""
