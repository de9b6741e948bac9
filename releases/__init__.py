"""The Kafka releases that mockraft knows, each as one value.

`release("3.9")` is a `Release`: what a controller of Kafka 3.9 offers and how it behaves, read from Kafka's own jars by
`make sync` and kept in `mockraft.schemas_json`:

- features and metadata versions, also the unstable ones (`Feature`, `MetadataVersion` of Kafka);
- configuration keys with their defaults and validators (`KafkaConfig`, `LogConfig` and others);
- error codes and their texts (`Errors`), and the versions of each API on the controller's listener (`ApiKeys`);
- rules of the controller that came with a release (`Behaviour`);
- message specs. Only the newest release has all of its files; an older one has the files that differ from those of the
  next newer release, and the names of those that it lacks.

A version of a message has the same bytes in every release, so `wire.messages` are the newest release's. The files
are read by `wire.spec_files`.
"""

from mockraft.releases.behaviour import Behaviour
from mockraft.releases.release import (
    DEFAULT,
    KRAFT_VERSION,
    METADATA_VERSION,
    NEWEST,
    SUPPORTED,
    Feature,
    MetadataVersion,
    Release,
    release,
)

__all__ = [
    "DEFAULT",
    "KRAFT_VERSION",
    "METADATA_VERSION",
    "NEWEST",
    "SUPPORTED",
    "Behaviour",
    "Feature",
    "MetadataVersion",
    "Release",
    "release",
]
