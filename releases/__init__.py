"""The Kafka releases that mockraft knows, each as one value.

`release("3.9")` is a `Release`: what a controller of Kafka 3.9 offers and how it behaves, read from Kafka's own jars by
`make sync` and kept in `mockraft.schemas_json`:

- features and metadata versions, also the unstable ones (`Feature`, `MetadataVersion` of Kafka);
- configuration keys with their defaults and validators (`KafkaConfig`, `LogConfig` and others);
- error codes and their texts (`Errors`), and the versions of each API on the controller's listener (`ApiKeys`);
- message specs. Only the newest release has all of its files; an older one has the files that differ from those of the
  next newer release, and the names of those that it lacks.

A release is the newest patch release of its line, unless an older one is named: `release("3.9.1")` has the tables and
the rules of 3.9.1. `release("4.5")` is a preview of what Kafka's trunk becomes.

`Behaviour` is the gate: the one table of how controllers differ, by release, level and proposal.

A version of a message has the same bytes in every release, so `wire.messages` are the newest release's. The files
are read by `wire.spec_files`.
"""

from mockraft.releases.behaviour import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION, Behaviour, present
from mockraft.releases.release import (
    DEFAULT,
    NEWEST,
    PREVIEW,
    SUPPORTED,
    Feature,
    MetadataVersion,
    Release,
    metadata_version,
    release,
)

__all__ = [
    "DEFAULT",
    "ELR_VERSION",
    "KRAFT_VERSION",
    "METADATA_VERSION",
    "NEWEST",
    "PREVIEW",
    "SUPPORTED",
    "Behaviour",
    "Feature",
    "MetadataVersion",
    "Release",
    "metadata_version",
    "present",
    "release",
]
