"""Answers of a controller, made by hand, and observers and brokers to give them to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from mockraft.brokers.metadata_view import MetadataView
from mockraft.brokers.observer import METADATA_TOPIC_ID, Observer
from mockraft.wire import error_codes, metadata_log_frame, record_batch
from mockraft.wire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from mockraft.wire.records.feature_level_record import FeatureLevelRecord
from mockraft.wire.records.no_op_record import NoOpRecord
from mockraft.wire.records.voters_record import Endpoint, Voter, VotersRecord

LEADER_ID = 3000
ENDPOINT = ("127.0.0.1", 9093)


def fetched(
    records: bytes = b"",
    *,
    high_watermark: int = 0,
    leader: tuple[int, int] = (LEADER_ID, 1),
    endpoints: Sequence[tuple[int, str, int]] = ((LEADER_ID, *ENDPOINT),),
    topic_id: bytes = METADATA_TOPIC_ID,
    error_code: int = 0,
    top_error_code: int = 0,
    **partition: Any,
) -> FetchResponse:
    """A Fetch response as the leader gives it."""
    data = PartitionData(
        partition_index=partition.pop("partition_index", 0),
        error_code=error_code,
        high_watermark=high_watermark,
        current_leader=LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
        records=records,
        **partition,
    )
    return FetchResponse(
        error_code=top_error_code,
        responses=[FetchableTopicResponse(topic_id=topic_id, partitions=[data])],
        node_endpoints=[NodeEndpoint(node_id=n, host=host, port=port) for n, host, port in endpoints],
    )


def batch(offset: int, *records: Any, epoch: int = 1) -> bytes:
    """One data batch; NoOp records when none are given."""
    values = [metadata_log_frame.encode(record, 0) for record in records or (NoOpRecord(),)]
    return record_batch.encode(values, base_offset=offset, leader_epoch=epoch, timestamp_ms=1)


def voters_batch(offset: int, *voters: tuple[int, str, int], epoch: int = 1) -> bytes:
    """A control batch with a VotersRecord."""
    record = VotersRecord(
        voters=[
            Voter(voter_id=n, endpoints=[Endpoint(name="CONTROLLER", host=host, port=port)]) for n, host, port in voters
        ]
    )
    pair = (record_batch.control_key(record_batch.KRAFT_VOTERS), record.write(0))
    return record_batch.encode_control([pair], base_offset=offset, leader_epoch=epoch, timestamp_ms=1)


def metadata_version(level: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=level)


@pytest.fixture(scope="session")
def answers() -> Any:
    """The functions above, for tests that cannot import a conftest."""

    class Answers:
        fetched = staticmethod(fetched)
        batch = staticmethod(batch)
        voters_batch = staticmethod(voters_batch)
        metadata_version = staticmethod(metadata_version)
        leader_id = LEADER_ID
        endpoint = ENDPOINT

    return Answers


@pytest.fixture
def observer() -> Observer:
    return Observer(1, "cluster", b"d" * 16, MetadataView(1))


@pytest.fixture
def led(observer: Observer) -> Observer:
    """An observer that knows its leader, node 3000 in epoch 1, and has nothing yet."""
    observer.receive(fetched(error_code=error_codes.FENCED_LEADER_EPOCH))
    return observer


@pytest.fixture
def following(led: Observer) -> Observer:
    """An observer that knows its leader and has records 0 to 4, of which 0 to 2 are committed."""
    led.receive(fetched(batch(0) + batch(1) + batch(2) + batch(3, NoOpRecord(), NoOpRecord()), high_watermark=3))
    return led
