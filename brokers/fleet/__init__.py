"""Many simulated brokers: a few in this process, or thousands in a few processes that follow a script."""

from mockraft.brokers.fleet.few import Fleet, ask_cluster_id, start_brokers

__all__ = ["Fleet", "ask_cluster_id", "start_brokers"]
