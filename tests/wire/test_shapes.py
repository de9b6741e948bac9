"""Structs with arrays, read with the shape of their neighbours."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire.errors import WireError
from mockraft.wire.messages import alter_partition_request, fetch_request, metadata_response
from mockraft.wire.messages.alter_partition_request import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from mockraft.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from mockraft.wire.messages.metadata_response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from mockraft.wire.shapes import RUN_MIN, SHAPE_VALUES_MAX, SHAPES_MAX, Shapes

VERSION = 13
# Readers and writers in Python: C code needs no shapes.
read = getattr(MetadataResponse.read, "__wrapped__", MetadataResponse.read)
write = getattr(MetadataResponse.write, "__wrapped__", MetadataResponse.write)
read_alteration = getattr(AlterPartitionRequest.read, "__wrapped__", AlterPartitionRequest.read)
write_alteration = getattr(AlterPartitionRequest.write, "__wrapped__", AlterPartitionRequest.write)
write_fetch = getattr(FetchRequest.write, "__wrapped__", FetchRequest.write)

PARTITIONS = st.builds(
    lambda index, lengths, tag: MetadataResponsePartition(
        partition_index=index,
        replica_nodes=list(range(lengths[0])),
        isr_nodes=list(range(lengths[1])),
        offline_replicas=list(range(lengths[2])),
        unknown_tagged_fields=[(4, b"tag")] if tag else (),
    ),
    st.integers(0, 1000),
    st.tuples(*[st.sampled_from([3, 3, 3, 3, 3, 0, 2, 130])] * 3),
    st.sampled_from([False] * 20 + [True]),
)


@pytest.fixture(autouse=True)
def shapes(monkeypatch: pytest.MonkeyPatch) -> Shapes:
    """Start without known shapes."""
    fresh = Shapes(*metadata_response._shapes_0.shaped)
    monkeypatch.setattr(metadata_response, "_shapes_0", fresh)
    return fresh


def response(partitions: list[MetadataResponsePartition]) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])


def alike(count: int, replicas: int = 3) -> list[MetadataResponsePartition]:
    return [MetadataResponsePartition(partition_index=i, replica_nodes=[i] * replicas) for i in range(count)]


@given(st.lists(PARTITIONS, max_size=60))
def test_mixed_shapes_are_read_as_written(partitions: list[MetadataResponsePartition]) -> None:
    message = response(partitions)
    written = write(message, VERSION)
    assert read(written, VERSION) == message
    for _ in range(2):
        assert write(read(written, VERSION), VERSION) == written


@pytest.mark.parametrize("count", [1, RUN_MIN, RUN_MIN + 1, 64, 65, 66, 200])
def test_runs_of_any_length_are_read_as_written(count: int, shapes: Shapes) -> None:
    message = response(alike(count))
    assert read(write(message, VERSION), VERSION) == message
    assert ((3, 0, 0) in shapes) == ((3, 0, 0) in shapes.writers) == (count > RUN_MIN)


def test_the_structs_of_short_arrays_add_up(shapes: Shapes) -> None:
    message = response(alike(3))
    written = message.write(VERSION)
    for _ in range(RUN_MIN // 3):
        assert read(written, VERSION) == message
    assert not shapes
    assert read(written, VERSION) == message
    assert shapes.last is shapes[3, 0, 0]


def test_one_struct_in_between_does_not_change_what_is_tried(shapes: Shapes) -> None:
    usual, other = alike(RUN_MIN + 1), alike(RUN_MIN + 1, replicas=2)
    for partitions in (other, usual, [*usual, other[0], usual[0], other[0], *usual]):
        assert read(write(response(partitions), VERSION), VERSION) == response(partitions)
    for table in (shapes, shapes.writers):
        assert [*table] == [(2, 0, 0), (3, 0, 0)]
        assert table.last is table[3, 0, 0]
    for _ in range(2):
        assert read(write(response(other[:2]), VERSION), VERSION) == response(other[:2])
    assert shapes.last is shapes[2, 0, 0]
    assert shapes.writers.last is shapes.writers[2, 0, 0]


@pytest.mark.parametrize("wrong", [None, 5, ["x", 1, 2], [1, 2, 1 << 31]])
def test_a_wrong_array_among_known_shapes_is_named(shapes: Shapes, wrong: Any) -> None:
    message = response(alike(RUN_MIN + 2))
    write(message, VERSION)
    assert shapes.writers
    message.topics[0].partitions[9].replica_nodes = wrong
    with pytest.raises(WireError) as refusal:
        write(message, VERSION)
    assert "topics[0].partitions[9].replicaNodes" in str(refusal.value)


def test_an_array_that_starts_with_another_shape_is_read_as_written(shapes: Shapes) -> None:
    read(response(alike(RUN_MIN + 1)).write(VERSION), VERSION)
    for partitions in (alike(2, replicas=4), alike(2) + alike(2, replicas=4), alike(1)):
        assert read(response(partitions).write(VERSION), VERSION) == response(partitions)
    assert [*shapes] == [(3, 0, 0)]


@given(st.lists(st.lists(st.sampled_from([(3, 0)] * 20 + [(3, 1), (2, 0), (0, 0), (1, 1)]), max_size=40), max_size=3))
def test_structs_with_arrays_of_structs_are_read_as_written(topics: list[list[tuple[int, int]]]) -> None:
    def partition(index: int, isr: int, tags: int) -> PartitionData:
        states = [BrokerState(broker_id=broker, broker_epoch=-broker) for broker in range(isr)]
        if tags:
            states[0].unknown_tagged_fields = [(4, b"tag")]
        return PartitionData(partition_index=index, new_isr_with_epochs=states)

    message = AlterPartitionRequest(
        topics=[
            TopicData(topic_id=bytes(16), partitions=[partition(index, *kind) for index, kind in enumerate(kinds)])
            for kinds in topics
        ]
    )
    assert read_alteration(message.write(3), 3) == message


def spoil_uuid(topic: FetchTopic) -> None:
    topic.topic_id = bytes(15)


def spoil_tags(topic: FetchTopic) -> None:
    topic.partitions[0].replica_directory_id = b"d" * 15


def spoil_unknown_tags(topic: FetchTopic) -> None:
    topic.partitions[0].unknown_tagged_fields = [(0, b"known")]
    topic.partitions[0].replica_directory_id = b"d" * 16


@pytest.mark.parametrize("spoil", [spoil_uuid, spoil_tags, spoil_unknown_tags])
def test_a_struct_that_cannot_be_written_is_refused_among_known_shapes(spoil: Callable[[FetchTopic], None]) -> None:
    topics = [FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(partition=i)]) for i in range(RUN_MIN + 2)]
    message = FetchRequest(topics=topics)
    write_fetch(message, 17)
    assert (1,) in fetch_request._shapes_0.writers or (1,) in fetch_request._shapes_2.writers
    spoil(topics[9])
    with pytest.raises(WireError):
        write_fetch(message, 17)


def test_fields_that_others_leave_out_are_written_among_known_shapes() -> None:
    topics = [FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(partition=i)]) for i in range(RUN_MIN + 2)]
    message = FetchRequest(topics=topics)
    plain = write_fetch(message, 17)
    topics[9].partitions[0].replica_directory_id = b"d" * 16
    written = write_fetch(message, 17)
    assert len(written) == len(plain) + 18
    assert FetchRequest.read(written, 17) == message


def test_an_absent_field_is_refused_among_known_shapes() -> None:
    partitions = [PartitionData(partition_index=i) for i in range(RUN_MIN + 2)]
    message = AlterPartitionRequest(topics=[TopicData(topic_id=bytes(16), partitions=partitions)])
    write_alteration(message, 3)
    assert (0,) in alter_partition_request._shapes_1.writers
    partitions[9].new_isr = [1]
    with pytest.raises(WireError, match="NewIsr"):
        write_alteration(message, 3)


def test_structs_read_alike_share_no_list() -> None:
    message = AlterPartitionRequest(topics=[TopicData(topic_id=bytes(16), partitions=[PartitionData()] * 40)])
    partitions = read_alteration(message.write(3), 3).topics[0].partitions
    assert (0,) in alter_partition_request._shapes_1
    assert len({id(partition.new_isr) for partition in partitions}) == 40


def test_every_truncation_of_a_known_shape_is_refused() -> None:
    written = response(alike(30)).write(VERSION)
    read(written, VERSION)
    for end in range(len(written)):
        with pytest.raises(WireError):
            read(written[:end], VERSION)


def test_a_peer_cannot_make_too_many_shapes_or_too_long_ones(shapes: Shapes) -> None:
    for replicas in range(SHAPES_MAX + 20):
        message = response(alike(RUN_MIN + 1, replicas))
        assert read(message.write(VERSION), VERSION) == message
    assert len(shapes) == SHAPES_MAX
    shapes.clear()
    long = response(alike(RUN_MIN + 1, SHAPE_VALUES_MAX + 1))
    assert read(long.write(VERSION), VERSION) == long
    assert not shapes
