"""Simulated brokers: what a controller sees of a Kafka broker, without the broker."""
