"""The committed metadata of a cluster for a broker that serves clients: topics, brokers, configs and features.

Mirrors Kafka's MetadataImage, but is updated in place. Invariant: only committed records change it, one at a time, a
transaction as a whole (KIP-868). Values in it (`Partition`, `BrokerNode`) are immutable; callers may keep them, but
must not keep the image's dicts over an await. It is separate from the controller's image on purpose: two independent
readings of the same records make comparisons between them meaningful.
"""

from mockraft.brokers.image.cluster_image import (
    NO_LEADER,
    BrokerNode,
    ClusterImage,
    ControllerNode,
    Endpoint,
    Partition,
    Topic,
)

__all__ = ["NO_LEADER", "BrokerNode", "ClusterImage", "ControllerNode", "Endpoint", "Partition", "Topic"]
