"""The controller under test: its address, and its features and versions before the first case."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from mockraft.conformance.expectation import PATIENCE_S, PAUSE_S
from mockraft.conformance.requests import Tree, request
from mockraft.releases import METADATA_VERSION, SUPPORTED, Release, release
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.client import (
    DisconnectedError,
    KafkaConnection,
    RequestTimedOutError,
    UnsupportedVersionError,
    connect,
)
from mockraft.wire.connection import CONTROLLER_ENDPOINTS, endpoint_of
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import to_json
from mockraft.wire.message import Message
from mockraft.wire.topic_names import CLUSTER_METADATA

_LITTLE_PATIENCE_MS = 2_000


class CannotConnectError(Exception):
    """No address responds as an active controller; the message explains what to do."""


@dataclass
class Target:
    """One active controller.

    `api_versions` maps API key to the versions offered, `supported_features` a feature to its range and
    `finalized_features` a feature to its level. `leader_epoch` and `end_offset` are the metadata log's at the start.
    `unanswered` are APIs that did not answer; nobody waits long for them again. `stated` is the release that the
    caller knows it to be. `brokers` counts those that were there at the start, such as the controller itself if it has
    both roles.
    """

    host: str
    port: int
    cluster_id: str = ""
    leader_id: int = -1
    leader_epoch: int = 0
    end_offset: int = 0
    api_versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    supported_features: dict[str, tuple[int, int]] = field(default_factory=dict)
    finalized_features: dict[str, int] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    stated: Release | None = None
    brokers: int = 0

    @property
    def bootstrap(self) -> str:
        """The address as `host:port`."""
        return f"{self.host}:{self.port}"

    @property
    def metadata_version(self) -> int:
        """The finalized level of metadata.version."""
        return self.finalized_features.get(METADATA_VERSION, 0)

    @property
    def release(self) -> Release:
        """The stated release, or the newest one of Kafka whose controllers support no higher metadata.version."""
        if self.stated is not None:
            return self.stated
        known = [release(version) for version in SUPPORTED]
        fitting = (each for each in reversed(known) if max(each.metadata_versions) <= self.newest_metadata_version)
        return next(fitting, known[0])

    @property
    def newest_metadata_version(self) -> int:
        """The highest level of metadata.version that it supports."""
        return self.supported_features.get(METADATA_VERSION, (0, 0))[1]

    @property
    def release_text(self) -> str:
        """The release by its name, and "almost" if its APIs or features are others."""
        is_exact = (self.api_versions, self.supported_features) == (
            self.release.api_versions,
            self.release.feature_ranges(),
        )
        return f"{'' if is_exact else 'almost '}Kafka {self.release.name}"

    async def open(self) -> KafkaConnection:
        """Open a new connection without a handshake. Raises CannotConnectError."""
        try:
            return await connect(self.host, self.port, client_id="conformance", handshake=False)
        except DisconnectedError as error:
            raise CannotConnectError(
                f"{error}. Is a controller listening there? --bootstrap takes the address of its CONTROLLER listener."
            ) from None

    async def send(self, connection: KafkaConnection, message: Message, *, version: int) -> Any:
        """Send a request and return its response message, with less patience if the API did not answer before.

        Raises the errors of `KafkaConnection.send`.
        """
        api = api_keys.name(message.api_key)
        timeout_ms = _LITTLE_PATIENCE_MS if api in self.unanswered else connection.request_timeout_ms
        try:
            answer = await connection.send(message, version=version, timeout_ms=timeout_ms)
        except RequestTimedOutError:
            self.unanswered.add(api)
            raise
        self.unanswered.discard(api)
        return answer


async def look_up(bootstrap: str, cluster_id: str | None = None, stated: Release | None = None) -> Target:
    """Find the active controller at `host:port[,host:port…]` and query it.

    No response has a controller's patch release: `stated` is the release if it is not the newest of its line.

    Raises CannotConnectError if none of them responds as one, ValueError if `bootstrap` is no list of addresses.
    """
    failures: list[str] = []
    for address in bootstrap.split(","):
        host, port = endpoint_of(address)
        try:
            return await _learn(Target(host, port, stated=stated), cluster_id)
        except CannotConnectError as error:
            failures.append(str(error))
        except (WireError, UnsupportedVersionError, DisconnectedError) as error:
            hint = "; cases speak PLAINTEXT: is it TLS or SASL there?" if isinstance(error, DisconnectedError) else ""
            failures.append(f"{address} does not answer as a Kafka controller listener does: {error}{hint}")
    raise CannotConnectError("\n".join(failures))


async def _learn(target: Target, cluster_id: str | None) -> Target:
    connection = await target.open()
    try:
        await connection.handshake()
        target.api_versions = dict(connection.api_versions)
        if api_keys.METADATA in target.api_versions:
            raise CannotConnectError(
                f"{target.bootstrap} is a broker's listener; --bootstrap takes the controller's, which brokers have in "
                "controller.quorum.bootstrap.servers"
            )
        if api_keys.DESCRIBE_QUORUM not in target.api_versions:
            raise CannotConnectError(f"{target.bootstrap} is no controller listener: it does not offer DescribeQuorum")
        await _learn_quorum(connection, target)
        await _learn_features(connection, target)
        target.cluster_id = cluster_id or await _cluster_id(connection, target)
        target.brokers = await _brokers(connection, target)
    finally:
        await connection.close()
    return target


async def _learn_quorum(connection: KafkaConnection, target: Target) -> None:
    request_tree: Tree = {"topics": [{"topicName": CLUSTER_METADATA, "partitions": [{"partitionIndex": 0}]}]}
    answer = await _send(connection, "DescribeQuorum", request_tree)
    partition = next((each for topic in answer["topics"] for each in topic["partitions"]), None)
    code = answer["errorCode"] or (partition and partition["errorCode"])
    if code:
        raise CannotConnectError(
            f"{target.bootstrap} is not the active controller ({error_codes.name(code)}): name the one that is, or all"
        )
    if partition is None:
        raise CannotConnectError(f"{target.bootstrap} does not describe the quorum of {CLUSTER_METADATA}")
    target.leader_id, target.leader_epoch = partition["leaderId"], partition["leaderEpoch"]
    target.end_offset = partition["highWatermark"]


async def _learn_features(connection: KafkaConnection, target: Target) -> None:
    """Wait for the features, which a controller publishes shortly after it became active."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        answer = await _send(connection, "ApiVersions", {"clientSoftwareName": "c", "clientSoftwareVersion": "1"})
        finalized = {each["name"]: each["maxVersionLevel"] for each in answer.get("finalizedFeatures", [])}
        if METADATA_VERSION in finalized and answer.get("finalizedFeaturesEpoch", -1) >= 0:
            break
        if asyncio.get_running_loop().time() > deadline:
            raise CannotConnectError(f"{target.bootstrap} does not say which metadata.version is finalized")
        await asyncio.sleep(PAUSE_S)
    target.finalized_features = finalized
    target.supported_features = {
        each["name"]: (each["minVersion"], each["maxVersion"]) for each in answer["supportedFeatures"]
    }


async def _cluster_id(connection: KafkaConnection, target: Target) -> str:
    if api_keys.DESCRIBE_CLUSTER in target.api_versions:
        answer = await _send(connection, "DescribeCluster", {"endpointType": CONTROLLER_ENDPOINTS})
        if not answer["errorCode"]:
            return str(answer["clusterId"])
    # Before DescribeCluster came to controllers, a refusal tells: "The given id "X" doesn't match the cluster id "Y"".
    if api_keys.REMOVE_RAFT_VOTER in target.api_versions:
        answer = await _send(connection, "RemoveRaftVoter", {"clusterId": "which", "voterId": -1})
        found = re.search(r'cluster id "([^"]+)"', answer["errorMessage"] or "")
        if found and answer["errorCode"] == error_codes.INCONSISTENT_CLUSTER_ID:
            return found[1]
    raise CannotConnectError(f"{target.bootstrap} does not return its cluster id: pass it with --cluster-id")


async def _brokers(connection: KafkaConnection, target: Target) -> int:
    """Return how many brokers could have replicas: controllers list none, but the refusal of so many replicas tells."""
    topic = {"name": "conformance-probe", "numPartitions": 1, "replicationFactor": 10_000}
    try:
        answer = await _send(connection, "CreateTopics", {"topics": [topic], "validateOnly": True})
    except (WireError, UnsupportedVersionError, DisconnectedError, RequestTimedOutError):
        target.unanswered.add("CreateTopics")
        return 0
    found = re.search(r"only (\d+) broker", "".join(str(each.get("errorMessage")) for each in answer["topics"]))
    return int(found[1]) if found else 0


async def _send(connection: KafkaConnection, api: str, tree: Tree) -> Tree:
    version = connection.version_for(messages.by_name(f"{api}Request"))
    return to_json(await connection.send(request(api, tree, version), version=version), version)
