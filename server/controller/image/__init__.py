"""The metadata image: the state that all records together define. Only records change it.

Mirrors Kafka's MetadataImage and its deltas, but is one mutable object: `Image.apply(record, offset)` is the only
way to change it, and `to_records(version)` returns the records of a snapshot, in MetadataImage.write's order.

`cluster`, `topics`, `settings` and `security` are its parts. Two indexes keep hot paths independent of cluster size:
`partition_index` (partitions by broker and directory, as BrokersToIsrs) and `acl_index` (by resource, AclCache).

Partitions, registrations, ACLs and tokens are values, so that a reader may keep one; records of an open transaction
are not visible before its end (KIP-868).

Nothing here decides or validates: a record that is in the log is applied as it is.
"""

from mockraft.server.controller.image.cluster import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    Endpoint,
    VersionRange,
)
from mockraft.server.controller.image.image import NOT_MODELLED, Image
from mockraft.server.controller.image.topics import Partition, Topic, TopicPartition, TopicsImage

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
