"""Simulated brokers: what a controller sees of a Kafka broker, without the broker."""

from mockraft.brokers.broker import SimulatedBroker

__all__ = ["SimulatedBroker"]
