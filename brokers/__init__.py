"""Simulated brokers: what a controller sees of a Kafka broker, without the broker."""

from mockraft.brokers.broker import SimulatedBroker
from mockraft.brokers.lifecycle import BrokerState

__all__ = ["BrokerState", "SimulatedBroker"]
