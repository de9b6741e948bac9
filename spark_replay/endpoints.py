"""Endpoints, and replacing controllers' addresses in responses.

Brokers learn controller addresses from responses (`NodeEndpoints`, DescribeQuorum, DescribeCluster) and, decisive after
a restart, from the VotersRecord in the metadata log, which Fetch and FetchSnapshot carry as record batches. Unless a
recording proxy replaces all of them, brokers bypass it. `Translate` maps an address to its replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from mockraft.wire import api_keys, messages, metadata_log_frame, record_batch
from mockraft.wire.connection import CONTROLLER_ENDPOINTS, write_response
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message
from mockraft.wire.record_batch import BatchHeader
from mockraft.wire.records.register_controller_record import RegisterControllerRecord
from mockraft.wire.records.voters_record import VotersRecord


class Endpoint(NamedTuple):
    """An address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Address(Protocol):
    host: str
    port: int


Translate = Callable[[str, int], tuple[str, int]]

RAFT_APIS = frozenset(
    {
        api_keys.FETCH,
        api_keys.FETCH_SNAPSHOT,
        api_keys.VOTE,
        api_keys.BEGIN_QUORUM_EPOCH,
        api_keys.END_QUORUM_EPOCH,
        api_keys.DESCRIBE_QUORUM,
    }
)
"""APIs of the quorum: their epochs are quorum epochs."""

WITH_CONTROLLER_ADDRESSES = RAFT_APIS | {api_keys.DESCRIBE_CLUSTER}
"""APIs whose responses carry controllers' addresses."""

_FRAME_OF_REGISTER_CONTROLLER = bytes((metadata_log_frame.FRAME_VERSION, RegisterControllerRecord.api_key))


def translate_response(frame: bytes, api_key: int, api_version: int, translate: Translate) -> bytes | None:
    """Return the response with translated controller addresses, length included; None if nothing changes.

    `frame` excludes its length. Raises WireError if it cannot be read. FetchSnapshot's bytes are left unchanged.
    """
    header_version = messages.response_header_version(api_key, api_version)
    response, end = messages.response(api_key).read_from(frame, api_version, 4 + header_version)
    if end != len(frame) or (header_version and frame[4]):
        return None
    if not translate_message(response, translate):
        return None
    return write_response(response.write(api_version), int.from_bytes(frame[:4], signed=True), header_version)


def translate_message(response: Message, translate: Translate) -> bool:
    """Translate the addresses in a decoded response, in place; return True if any changed."""
    nodes: list[_Address] = list(getattr(response, "node_endpoints", ()))
    if isinstance(response, messages.DescribeQuorumResponse):
        nodes += [listener for node in response.nodes for listener in node.listeners]
    elif isinstance(response, messages.DescribeClusterResponse) and response.endpoint_type == CONTROLLER_ENDPOINTS:
        nodes += response.brokers
    changed = _translate_all(nodes, translate)
    if isinstance(response, messages.FetchResponse):
        for partition in (partition for topic in response.responses for partition in topic.partitions):
            if partition.records:
                records = translate_log(bytes(partition.records), translate)
                changed |= records != partition.records
                partition.records = records
    return changed


def translate_log(records: bytes, translate: Translate) -> bytes:
    """Return record batches of the metadata log with translated VotersRecords and RegisterControllerRecords.

    Batches with neither stay the same byte for byte; so does everything after the first bytes that are no batch.
    """
    parts = []
    position = 0
    try:
        for header in record_batch.read_headers(records, allow_partial_tail=True):
            parts.append(_translate_batch(records, header, translate))
            position = header.end
    except WireError:
        pass
    return b"".join((*parts, records[position:]))


def _translate_batch(data: bytes, header: BatchHeader, translate: Translate) -> bytes:
    whole = data[header.position : header.end]
    if not header.is_control and _FRAME_OF_REGISTER_CONTROLLER not in whole:
        return whole
    pairs = []
    changed = False
    for key, value in record_batch.read_batch(data, header).records:
        new = value
        if value is not None:
            new = _translate_control(key, value, translate) if header.is_control else _translate_data(value, translate)
        changed |= new != value
        pairs.append((key, new))
    return record_batch.with_records(data, header, pairs) if changed else whole


def _translate_control(key: bytes | None, value: bytes, translate: Translate) -> bytes:
    if record_batch.control_type(key) != record_batch.KRAFT_VOTERS:
        return value
    record = VotersRecord.read(value, 0)
    changed = _translate_all([each for voter in record.voters for each in voter.endpoints], translate)
    return record.write(0) if changed else value


def _translate_data(value: bytes, translate: Translate) -> bytes:
    if not value.startswith(_FRAME_OF_REGISTER_CONTROLLER):
        return value
    record, version = metadata_log_frame.decode(value)
    assert isinstance(record, RegisterControllerRecord)
    return metadata_log_frame.encode(record, version) if _translate_all(record.end_points, translate) else value


def _translate_all(endpoints: Iterable[_Address], translate: Translate) -> bool:
    changed = False
    for each in endpoints:
        if not each.host or each.port <= 0:
            continue
        translated = translate(each.host, each.port)
        if translated != (each.host, each.port):
            each.host, each.port = translated
            changed = True
    return changed
