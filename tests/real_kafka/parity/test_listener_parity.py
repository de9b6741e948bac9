"""Kafka's controller listener and ours give equal answers to good and bad bytes, and close on the same."""

import asyncio
import struct
from typing import Any

import pytest
from mockraft.conformance.raw_bytes import PROBE_ID, Fate, fate, framed, header
from mockraft.conformance.target import Target
from mockraft.kafka.processes import wait_until
from mockraft.wire.connection import write_request
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest

pytestmark = pytest.mark.real_kafka

ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"
LOOPBACK = b"\x7f\0\0\1"


def fate_on(side: Any, data: bytes) -> Fate:
    return asyncio.run(fate(Target(*side.connection.getpeername()[:2]), data))


def software(name: str, version: str) -> bytes:
    message = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    return write_request(message, 3, 77, "x")


HEARTBEAT = write_request(BrokerHeartbeatRequest(broker_id=99, broker_epoch=5), 1, 77, "x")[4:]

FATES = {
    "nothing": b"",
    "an empty frame": framed(b""),
    "a frame of one byte": framed(b"\0"),
    "a key and no version": framed(b"\0\x3f"),
    "no correlation id": framed(struct.pack(">hh", 63, 1)),
    "no client id": framed(struct.pack(">hhi", 63, 1, 77)),
    "no tags after the client id": framed(header(63, 1)),
    "a negative length": struct.pack(">i", -1),
    "a length over the limit": struct.pack(">i", 104_857_601),
    "HTTP": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "an API key that is not there": framed(header(999, 0)),
    "a negative API key": framed(header(-1, 0)),
    "Metadata": framed(header(3, 12) + b"\0\1\0\0\0"),
    "LeaderAndIsr": framed(header(4, 7) + b"\0"),
    "Produce": framed(header(0, 9) + b"\0"),
    "a heartbeat": framed(HEARTBEAT),
    "a heartbeat and trailing bytes": framed(HEARTBEAT + b"abcdef"),
    "a heartbeat cut short": framed(HEARTBEAT[:-3]),
    "a heartbeat of version 3": framed(HEARTBEAT[:2] + b"\0\3" + HEARTBEAT[4:]),
    "a heartbeat of version -1": framed(header(63, -1) + bytes(30)),
    "a heartbeat of version 32767": framed(header(63, 32767) + bytes(30)),
    "two heartbeats, then garbage": framed(HEARTBEAT) * 2 + framed(b"\1\2\3\4\5\6\7\x08\x09"),
    "a heartbeat without a client id": framed(header(63, 1, None) + b"\0" + HEARTBEAT[12:]),
    "a client id of negative length": framed(struct.pack(">hhih", 63, 1, 77, -7) + HEARTBEAT[10:]),
    "an unknown tag in the header": framed(header(63, 1) + b"\1\5\2ab" + HEARTBEAT[12:]),
    "a tag twice in the header": framed(header(63, 1) + b"\2\5\1a\5\1b" + HEARTBEAT[12:]),
    "ApiVersions of version 5": framed(header(18, 5) + b"\0\1\1\0"),
    "ApiVersions of version 32767": framed(header(18, 32767) + b"\0what a later client might say"),
    "ApiVersions of version -1": framed(header(18, -1)),
    "ApiVersions without a body": framed(header(18, 3)),
    "a nameless client": software("", "1"),
    "a client without a version": software("a", ""),
    "a client of an odd name": software("a b", "1"),
    "a client that begins with a dash": software("-a", "1"),
    "a client that ends with a dot": software("a", "1."),
    "a client with a newline": software("a\n", "1"),
    "a client with an umlaut": software("ä", "1"),
    "DescribeCluster of brokers, v0": write_request(DescribeClusterRequest(), 0, 77, "x"),
    "DescribeCluster of brokers, v1": write_request(DescribeClusterRequest(), 1, 77, "x"),
    "DescribeCluster of type 0": write_request(DescribeClusterRequest(endpoint_type=0), 1, 77, "x"),
    "DescribeCluster of type 3": write_request(DescribeClusterRequest(endpoint_type=3), 2, 77, "x"),
    "DescribeCluster of type -1": write_request(DescribeClusterRequest(endpoint_type=-1), 2, 77, "x"),
}


def carried(message: Any, version: int) -> bytes:
    return write_request(message, version, 5, "console")[4:]


def enveloped(data: bytes, principal: bytes | None = ANONYMOUS, address: bytes = LOOPBACK) -> bytes:
    message = EnvelopeRequest(request_data=data, request_principal=principal, client_host_address=address)
    return write_request(message, 0, 77, "x")


DELETE = carried(DeleteTopicsRequest(), 6)
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=3)])

ENVELOPES = {
    "DeleteTopics": enveloped(DELETE),
    "DeleteTopics v1": enveloped(carried(DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 1)),
    "CreateTopics v7": enveloped(carried(CREATE, 7)),
    "CreateTopics v4": enveloped(carried(CREATE, 4)),
    "IPv6": enveloped(DELETE, address=bytes(15) + b"\1"),
    "trailing bytes": enveloped(DELETE + b"abc"),
    "no principal": enveloped(DELETE, None),
    "an empty principal": enveloped(DELETE, b""),
    "a principal of version 1": enveloped(DELETE, b"\0\1" + ANONYMOUS[2:]),
    "a principal of version -1": enveloped(DELETE, b"\xff\xff" + ANONYMOUS[2:]),
    "a principal cut short": enveloped(DELETE, ANONYMOUS[:6]),
    "a principal and trailing bytes": enveloped(DELETE, ANONYMOUS + b"abc"),
    "principal and address wrong": enveloped(DELETE, b"", b""),
    "no address": enveloped(DELETE, address=b""),
    "an address of three bytes": enveloped(DELETE, address=b"\x7f\0\0"),
    "address and header wrong": enveloped(b"", address=b"\x7f\0\0"),
    "nothing inside": enveloped(b""),
    "an unknown key inside": enveloped(b"\x03\xe7" + DELETE[2:]),
    "a header cut short": enveloped(DELETE[:9]),
    "a heartbeat inside": enveloped(carried(BrokerHeartbeatRequest(), 1)),
    "a heartbeat cut short inside": enveloped(carried(BrokerHeartbeatRequest(), 1)[:-3]),
    "Metadata inside": enveloped(b"\0\3\0\x0c" + DELETE[4:]),
    "an envelope inside": enveloped(enveloped(DELETE)[4:]),
    "ApiVersions inside": enveloped(carried(ApiVersionsRequest(), 0)),
    "a version that is not there inside": enveloped(DELETE[:2] + b"\0\x63" + DELETE[4:]),
    "a negative version inside": enveloped(DELETE[:2] + b"\xff\xff" + DELETE[4:]),
    "a body cut short": enveloped(DELETE[:-2]),
}


def fates(side: Any) -> dict[str, Fate]:
    return {name: fate_on(side, data) for name, data in {**FATES, **ENVELOPES}.items()}


def known(side: Any) -> dict[str, Any]:
    """The fields that are compared; the others are each controller's own."""
    # A controller registers itself a moment after it takes over.
    registered = DescribeClusterRequest(endpoint_type=2)
    wait_until(lambda: side.ask(registered, 1).brokers, 60, "the controller's registration")
    answers = {}
    for version in range(5):
        message = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        response = side.ask(message, version)
        for features in (response.supported_features, response.finalized_features):
            features.sort(key=lambda feature: feature.name)
        answers[f"ApiVersions v{version}"] = to_json(response, version)
    for version in (1, 2):
        for operations in (False, True):
            asked = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=operations)
            response = side.ask(asked, version)
            assert response.cluster_id == side.cluster_id
            assert [broker.port for broker in response.brokers] == [side.connection.getpeername()[1]]
            response.cluster_id, response.brokers[0].port = "", 0
            answers[f"DescribeCluster v{version}, operations {operations}"] = to_json(response, version)
    return answers


def run(side: Any) -> dict[str, Any]:
    return {**known(side), **fates(side)}


KNOWN = [f"ApiVersions v{version}" for version in range(5)]
KNOWN += [f"DescribeCluster v{version}, operations {asked}" for version in (1, 2) for asked in (False, True)]


@pytest.mark.parametrize("name", [*FATES, *ENVELOPES, *KNOWN])
def test_response_bytes_and_surviving_connections_are_equal(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]


def test_an_older_metadata_version_answers_the_same(on_both: Any) -> None:
    def asked(side: Any) -> dict[str, Any]:
        quorum = write_request(DescribeQuorumRequest(), 0, 77, "x")
        cluster = to_json(side.ask(DescribeClusterRequest(endpoint_type=2), 1), 1)

        def published() -> Any:
            """Kafka's controller takes the lowest level, and -1, until it has published what its log says."""
            result = side.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
            return result if result.finalized_features_epoch >= 0 else None

        features = wait_until(published, 60, "the finalized features")
        levels = sorted((f.name, f.min_version_level, f.max_version_level) for f in features.finalized_features)
        return {
            "cluster": cluster,
            "levels": levels,
            "epoch": features.finalized_features_epoch,
            "quorum": fate_on(side, quorum),
        }

    theirs, ours = on_both(asked, level="3.6-IV2")
    assert ours == theirs


def test_every_probe_has_a_distinct_correlation_id() -> None:
    assert all(PROBE_ID.to_bytes(4, "big") not in data for data in (*FATES.values(), *ENVELOPES.values()))
