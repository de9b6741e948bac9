"""What differs between two runs of the same thing: ids and epochs that a controller hands out, and times.

Values that a controller chooses are of a kind; within a kind captured and live values are paired, one to one, as they
show up in the same place of two answers. A captured value in a later request is replaced by its live partner.
Offsets of the metadata log are not paired (two controllers write other records in between): a request's are set from
where the live reader is, an answer's are not compared.
"""

from __future__ import annotations

from typing import Any

from mockraft.spark_replay.endpoints import RAFT_APIS

CLUSTER_ID, BROKER_EPOCH, TOPIC_ID, DIRECTORY_ID, INCARNATION_ID, QUORUM_EPOCH, PRODUCER_ID, HOST, PORT = (
    "cluster id",
    "broker epoch",
    "topic id",
    "directory id",
    "incarnation id",
    "quorum epoch",
    "producer id",
    "host",
    "port",
)
_KINDS = {
    "clusterId": CLUSTER_ID,
    "brokerEpoch": BROKER_EPOCH,
    "previousBrokerEpoch": BROKER_EPOCH,
    "topicId": TOPIC_ID,
    "topicIds": TOPIC_ID,
    "incarnationId": INCARNATION_ID,
    "replicaDirectoryId": DIRECTORY_ID,
    "voterDirectoryId": DIRECTORY_ID,
    "producerIdStart": PRODUCER_ID,
}
_QUORUM_KINDS = {"leaderEpoch": QUORUM_EPOCH, "currentLeaderEpoch": QUORUM_EPOCH, "lastFetchedEpoch": QUORUM_EPOCH}
_ENDPOINT_KINDS = {"host": HOST, "port": PORT}

NOT_COMPARED = frozenset(
    {
        "throttleTimeMs",
        "errorMessage",
        "finalizedFeaturesEpoch",
        "highWatermark",
        "lastStableOffset",
        "logStartOffset",
        "logEndOffset",
        "lastFetchTimestamp",
        "lastCaughtUpTimestamp",
        "issueTimestampMs",
        "expiryTimestampMs",
        "maxTimestampMs",
        "tokenId",
        "hmac",
        "records",
        "unalignedRecords",
        "size",
        "position",
        "divergingEpoch",
        "snapshotId",
    }
)
"""Fields of answers whose values are times, texts for people, secrets, or offsets; null or not is still compared."""

_VOLATILE_IN_REQUESTS = frozenset(
    {
        *_KINDS,
        "currentLeaderEpoch",
        "lastFetchedEpoch",
        "leaderEpoch",
        "partitionEpoch",
        "fetchOffset",
        "highWatermark",
        "logStartOffset",
        "currentMetadataOffset",
        "position",
        "snapshotId",
        "directoryId",
        "logDirs",
        "offlineLogDirs",
        "cordonedLogDirs",
        "directories",
        "requestData",
        "requestPrincipal",
        "clientHostAddress",
        "timeoutMs",
        "maxWaitMs",
        "port",
        "topicsData",
        "features",  # in Java's order of a HashMap
    }
)

_FIXED = {None, -1, 0, "", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"}
"""Never paired: no value, and the ids that mean something (UNASSIGNED, the metadata topic)."""


def kind_of(field: str, api_key: int, parent: str = "") -> str | None:
    """The kind of a field's values in an API's messages, None for a plain field. `parent` is the field it is in."""
    found = _KINDS.get(field)
    if found is None and api_key in RAFT_APIS:
        found = _QUORUM_KINDS.get(field)
    if found is None and parent in ("nodeEndpoints", "listeners", "brokers"):
        found = _ENDPOINT_KINDS.get(field)
    return found


def is_volatile(field: str) -> bool:
    """Whether a field of a request would be another in the next run of the same thing."""
    return field in _VOLATILE_IN_REQUESTS or field.endswith(("TimestampMs", "Timestamp"))


class Bindings:
    """Pairs of captured and live values by kind; `missing` are the values asked for that have no partner yet."""

    def __init__(self) -> None:
        self.pairs: dict[str, dict[Any, Any]] = {}
        self._back: dict[str, dict[Any, Any]] = {}
        self.missing: set[Any] = set()

    def learn(self, kind: str, captured: Any, live: Any) -> bool:
        """Pair two values; False when either has another partner, or means something and they are not the same."""
        if captured in _FIXED or live in _FIXED:
            return bool(captured == live)
        there = self.pairs.setdefault(kind, {}).setdefault(captured, live)
        back = self._back.setdefault(kind, {}).setdefault(live, captured)
        # Not one to one: two controllers of a capture may be one here, and its elections need not happen again.
        return bool(there == live and (back == captured or kind in (HOST, PORT, QUORUM_EPOCH)))

    def live(self, kind: str, captured: Any) -> Any:
        """The live partner; the captured value itself where none is known."""
        known = self.pairs.get(kind, {})
        if captured not in known:
            self.missing.add(captured)
        return known.get(captured, captured)

    def bind(self, tree: Any, api_key: int, parent: str = "") -> Any:
        """A request's JSON tree with live values in place of captured ones."""
        if isinstance(tree, dict):
            bound = {}
            for field, value in tree.items():
                kind = kind_of(field, api_key)
                if kind is not None and not isinstance(value, dict | list):
                    bound[field] = self.live(kind, value)
                elif kind is not None and isinstance(value, list) and not any(isinstance(e, dict) for e in value):
                    bound[field] = [self.live(kind, each) for each in value]
                else:
                    bound[field] = self.bind(value, api_key, field)
            return bound
        return [self.bind(each, api_key, parent) for each in tree] if isinstance(tree, list) else tree
