"""Structs with arrays, read with the shape of their neighbours."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.wire.errors import WireError
from mockraft.wire.messages import metadata_response
from mockraft.wire.messages.metadata_response import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from mockraft.wire.shapes import RUN_MIN, SHAPE_VALUES_MAX, SHAPES_MAX, Shapes

VERSION = 13
SHAPES: Shapes = metadata_response._shapes_0
# The pure reader: C code needs no shapes.
read = getattr(MetadataResponse.read, "__wrapped__", MetadataResponse.read)

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
def fresh_shapes() -> Iterator[None]:
    """Start without known shapes."""
    SHAPES.clear()
    yield
    SHAPES.clear()


def response(partitions: list[MetadataResponsePartition]) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])


def alike(count: int, replicas: int = 3) -> list[MetadataResponsePartition]:
    return [MetadataResponsePartition(partition_index=i, replica_nodes=[i] * replicas) for i in range(count)]


@given(st.lists(PARTITIONS, max_size=60))
def test_mixed_shapes_are_read_as_written(partitions: list[MetadataResponsePartition]) -> None:
    message = response(partitions)
    written = message.write(VERSION)
    assert read(written, VERSION) == message
    assert read(written, VERSION) == message


@pytest.mark.parametrize("count", [1, RUN_MIN, RUN_MIN + 1, 64, 65, 66, 200])
def test_runs_of_any_length_are_read_as_written(count: int) -> None:
    message = response(alike(count))
    assert read(message.write(VERSION), VERSION) == message
    assert ((3, 0, 0) in SHAPES) == (count > RUN_MIN)


def test_every_truncation_of_a_known_shape_is_refused() -> None:
    written = response(alike(30)).write(VERSION)
    read(written, VERSION)
    for end in range(len(written)):
        with pytest.raises(WireError):
            read(written[:end], VERSION)


def test_a_peer_cannot_make_too_many_shapes_or_too_long_ones() -> None:
    for replicas in range(SHAPES_MAX + 20):
        message = response(alike(20, replicas))
        assert read(message.write(VERSION), VERSION) == message
    assert len(SHAPES) == SHAPES_MAX
    SHAPES.clear()
    long = response(alike(20, SHAPE_VALUES_MAX + 1))
    assert read(long.write(VERSION), VERSION) == long
    assert not SHAPES
