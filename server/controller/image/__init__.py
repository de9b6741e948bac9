"""The metadata image: what all records together say. Only records change it."""

from mockraft.server.controller.image.cluster import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    Endpoint,
    VersionRange,
)
from mockraft.server.controller.image.image import NOT_MODELLED, Image
from mockraft.server.controller.image.partition_index import TopicPartition
from mockraft.server.controller.image.topics import Partition, Topic, TopicsImage

__all__ = [
    "NOT_MODELLED",
    "BrokerRegistration",
    "ClusterImage",
    "ControllerRegistration",
    "Endpoint",
    "Image",
    "Partition",
    "Topic",
    "TopicPartition",
    "TopicsImage",
    "VersionRange",
]
