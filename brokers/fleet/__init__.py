"""Many simulated brokers: a few in this process, or thousands in a few processes that follow a script."""

from mockraft.brokers.fleet.few import Fleet, ask_cluster_id, start_brokers
from mockraft.brokers.fleet.runner import FleetRunner
from mockraft.brokers.fleet.script import steps_of

__all__ = ["Fleet", "FleetRunner", "ask_cluster_id", "start_brokers", "steps_of"]
