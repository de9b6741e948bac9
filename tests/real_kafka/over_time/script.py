"""Transcripts of a controller over time: answers, and the records that follow them, from one process to the next."""

from __future__ import annotations

from typing import Any

from mockraft.conformance.requests import request
from mockraft.kafka.child_process import wait_until
from mockraft.releases import release
from mockraft.wire import error_codes, messages, uuids
from mockraft.wire.json_form import to_json

from tools.blocking_connection import BlockingConnection

from ..parity.conftest import FAR_OFFSET, Side

LEADER_CHANGE = 2
_BY_CHANCE = {"brokerEpoch", "previousBrokerEpoch", "topicId", "tokenId", "hmac", "salt", "storedKey", "serverKey"}
_BY_CHANCE |= {"incarnationId", "throttleTimeMs", "finalizedFeaturesEpoch", "directoryId", "voterDirectoryId"}
_NOTHING = (-1, "AAAAAAAAAAAAAAAAAAAAAA", None, "")
QUORUM_TOPIC = {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}


class Masks:
    """Names for values that chance makes, the same value always with the same name: `brokerEpoch #2`."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Any], int] = {}

    def name(self, kind: str, value: Any) -> str:
        """Return the value's name, by the order in which values of its kind were first named."""
        known = sum(each == kind for each, _ in self._numbers)
        return f"{kind} #{self._numbers.setdefault((kind, value), known + 1)}"

    def masked(self, tree: Any) -> Any:
        """Return a JSON tree with names for the values of these fields, and without times."""
        if isinstance(tree, list):
            return [self.masked(each) for each in tree]
        if not isinstance(tree, dict):
            return tree
        return {key: self._value(key, value) for key, value in tree.items() if not key.endswith(("Timestamp", "Ms"))}

    def _value(self, key: str, value: Any) -> Any:
        is_masked = key in _BY_CHANCE and not isinstance(value, list | dict) and value not in _NOTHING
        return (
            self.name(key.replace("previous", "").replace("BrokerEpoch", "brokerEpoch"), value)
            if is_masked
            else (self.masked(value))
        )


class Script:
    """Requests to the active controller, and what they led to; `seen` is the transcript by the name of the step."""

    def __init__(self, bootstrap: str, cluster_id: str, controllers: frozenset[int] = frozenset({3000})) -> None:
        self.seen: dict[str, Any] = {}
        self.epochs: dict[int, int] = {}
        self.masks = Masks()
        self.side = Side(bootstrap, cluster_id, controllers)

    def close(self) -> None:
        self.side.close()

    def ask(self, step: str, api: str, fields: dict[str, Any], version: int | None = None) -> Any:
        """Send a request; the transcript has its answer and the records. Return the answer."""
        version = messages.by_name(f"{api}Request").max_version if version is None else version
        response = self.side.ask(request(api, fields, version), version)
        tree: Any = self.masks.masked(to_json(response, version))
        for name in ("responses", "results", "finalizedFeatures", "supportedFeatures"):
            # In Kafka's order of hash maps.
            if name in tree:
                tree[name].sort(key=repr)
        self.see(step, tree, self.records())
        return response

    def see(self, step: str, *values: Any) -> None:
        assert step not in self.seen, step
        self.seen[step] = values

    def records(self) -> list[Any]:
        """Records since the last call, as JSON with masks."""
        return [
            (type(record).__name__, version, self.masks.masked(to_json(record, version)))
            for record, version in self.side.new_records()
        ]

    def register(self, step: str, broker_id: int, incarnation: int = 1, **fields: Any) -> None:
        """Register a broker with a directory of its own; a new epoch is kept."""
        given = {
            "brokerId": broker_id,
            "clusterId": self.side.cluster_id,
            "incarnationId": uuids.text_of(bytes([broker_id, incarnation]) * 8),
            "listeners": [{"name": "PLAINTEXT", "host": "localhost", "port": 9000 + broker_id}],
            "features": [
                {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
                for name, (low, high) in release().feature_ranges().items()
            ],
            "logDirs": [uuids.text_of(bytes([broker_id]) * 16)],
            **fields,
        }
        answer = self.ask(step, "BrokerRegistration", given)
        if answer.error_code == error_codes.NONE:
            self.epochs[broker_id] = answer.broker_epoch

    def heartbeat(self, step: str, broker_id: int, **fields: Any) -> None:
        """Send a heartbeat of a broker that has read everything."""
        self.ask(step, "BrokerHeartbeat", self.heartbeat_of(broker_id) | fields)

    def heartbeat_of(self, broker_id: int) -> dict[str, Any]:
        """The fields of a heartbeat of a broker that has read everything."""
        return {
            "brokerId": broker_id,
            "brokerEpoch": self.epochs.get(broker_id, 7),
            "currentMetadataOffset": FAR_OFFSET,
        }

    def allocate(self, step: str, broker_id: int) -> None:
        """Ask for a block of producer ids."""
        self.ask(step, "AllocateProducerIds", {"brokerId": broker_id, "brokerEpoch": self.epochs[broker_id]})

    def create_topic(self, name: str, *brokers: int) -> None:
        """Create a topic of one partition on these brokers."""
        topic = {"name": name, "numPartitions": -1, "replicationFactor": -1}
        topic["assignments"] = [{"partitionIndex": 0, "brokerIds": list(brokers)}]
        self.ask(f"create {name}", "CreateTopics", {"topics": [topic], "timeoutMs": 10_000})

    def leader_epoch(self) -> int:
        """The epoch in which the controller leads, -1 if it does not or has nothing committed in it yet."""
        return led_epoch(described_quorum(self.side))

    def follow(self, bootstrap: str, since_epoch: int) -> None:
        """Continue at a controller that leads an epoch after this one, and see its epoch's first records."""
        self.side.reconnect(bootstrap)
        wait_until(lambda: self.leader_epoch() > since_epoch, 60, "a new epoch")
        began = len(self.side.control_types)
        records: list[Any] = []

        def has_begun() -> bool:
            records.extend(self.records())
            return LEADER_CHANGE in self.side.control_types[began:]

        wait_until(has_begun, 60, "the new epoch's first record")
        number = sum(step.startswith("records of") for step in self.seen) + 1
        self.see(f"records of epoch {number}", records, set(self.side.control_types[began:]))


def asked(connection: Side | BlockingConnection, api: str, fields: dict[str, Any], version: int | None = None) -> Any:
    """Send a request, in its newest version unless told, and return the response as JSON."""
    version = messages.by_name(f"{api}Request").max_version if version is None else version
    message: Any = request(api, fields, version)
    send = connection.ask if isinstance(connection, Side) else connection.exchange
    return to_json(send(message, version), version)


def described_quorum(connection: Side | BlockingConnection) -> Any:
    """The metadata partition as a controller's DescribeQuorum has it."""
    return asked(connection, "DescribeQuorum", {"topics": [QUORUM_TOPIC]})["topics"][0]["partitions"][0]


def led_epoch(described: Any) -> int:
    """The epoch of a partition that a leader described, -1 if it is none or has nothing committed in it yet."""
    return -1 if described["errorCode"] or described["highWatermark"] < 0 else int(described["leaderEpoch"])


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return the steps that differ, as text."""
    assert list(ours) == list(theirs)
    return "\n".join(
        f"{step}\n  Kafka's: {theirs[step]}\n  ours:    {ours[step]}" for step in theirs if theirs[step] != ours[step]
    )
