"""The metadata log as a broker that serves clients needs it: topics, brokers, configs and features, whole."""

from mockraft.brokers.image.brokers import BrokerNode, ControllerNode, Endpoint
from mockraft.brokers.image.cluster_image import ClusterImage
from mockraft.brokers.image.topics import NO_LEADER, Partition, Topic

__all__ = ["NO_LEADER", "BrokerNode", "ClusterImage", "ControllerNode", "Endpoint", "Partition", "Topic"]
