import itertools

from hypothesis import given
from hypothesis import strategies as st
from mockraft.server.controller.log.batches import LogBatches

# (size in bytes, records, steps by which the leader epoch rises) of each batch
batch_shapes = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=30)


def filled(shapes: list[tuple[int, int, int]]) -> tuple[LogBatches, list[tuple[int, int, bytes, int]]]:
    """The batches, and a plain list (base offset, end offset, bytes, epoch) to compare with."""
    batches, plain, epoch = LogBatches(), [], 1
    for number, (size, count, steps) in enumerate(shapes):
        epoch += steps
        data = bytes([number]) * size
        plain.append((batches.end_offset, batches.end_offset + count, data, epoch))
        batches.add(data, batches.end_offset, count, epoch)
    return batches, plain


@given(batch_shapes, st.integers(0, 400), st.data())
def test_reads_whole_batches_within_the_limit_and_at_least_one(
    shapes: list[tuple[int, int, int]], bytes_max: int, draw: st.DataObject
) -> None:
    batches, plain = filled(shapes)
    offset = draw.draw(st.integers(0, batches.end_offset - 1))
    wanted = [data for _, end, data, _ in plain if end > offset]
    sizes = itertools.accumulate(len(data) for data in wanted)
    fitting = max(sum(size <= bytes_max for size in sizes), 1)
    assert batches.read(offset, bytes_max) == b"".join(wanted[:fitting])
    assert b"".join(batches.since(offset)) == b"".join(wanted)


@given(batch_shapes, st.data())
def test_batches_are_unchanged_after_a_prefix_is_dropped(
    shapes: list[tuple[int, int, int]], draw: st.DataObject
) -> None:
    batches, plain = filled(shapes)
    end_offset, epoch = batches.end_offset, plain[-1][3]
    cut = draw.draw(st.sampled_from([base for base, *_ in plain] + [end_offset]))
    before = batches.read(cut, 1 << 30)
    batches.drop_before(cut)
    assert (batches.end_offset, batches.read(cut, 1 << 30), batches.held_bytes) == (end_offset, before, len(before))
    batches.add(b"next", end_offset, 1, epoch)
    assert batches.read(end_offset, 100) == b"next"
    assert batches.bytes_since(end_offset) == 4
    kept_epochs: dict[int, int] = {}
    for base, end, _, each in plain:
        if end > cut:
            kept_epochs.setdefault(each, base)
    kept_epochs.setdefault(epoch, end_offset)
    assert dict(batches.epochs) == kept_epochs


def test_read_at_the_end_is_empty() -> None:
    batches, _ = filled([(10, 2, 0)])
    assert batches.read(2, 100) == b""
    assert batches.read(99, 100) == b""


def test_a_single_batch_is_given_as_it_is_and_a_span_is_joined_once() -> None:
    batches = LogBatches()
    data = [bytes([number]) * 10 for number in range(4)]
    for number, each in enumerate(data):
        batches.add(each, number, 1, 1)
    assert batches.read(1, 10) is data[1]
    assert batches.read(0, 35) is batches.read(0, 39)


def test_joined_spans_are_bounded() -> None:
    batches = LogBatches()
    for number in range(200):
        batches.add(b"x" * 10, number, 1, 1)
        batches.read(0, 1 << 20)
    assert len(batches._joined) <= 16


def test_the_end_of_an_epoch_is_where_a_higher_one_begins() -> None:
    batches, _ = filled([(1, 3, 0), (1, 2, 2), (1, 4, 1)])  # epoch 1: 0-2, epoch 3: 3-4, epoch 4: 5-8
    assert batches.epochs == [(1, 0), (3, 3), (4, 5)]
    assert batches.end_of_epoch(0) == (0, 0)
    assert batches.end_of_epoch(1) == (1, 3)
    assert batches.end_of_epoch(2) == (1, 3)
    assert batches.end_of_epoch(3) == (3, 5)
    assert batches.end_of_epoch(4) == (4, 9)
    assert batches.end_of_epoch(5) is None


def test_restarts_at_another_offset() -> None:
    batches, _ = filled([(10, 2, 0)])
    batches.restart_at(50)
    assert (batches.end_offset, batches.held_bytes, batches.epochs) == (50, 0, [])
    batches.add(b"abc", 50, 1, 7)
    assert batches.read(50, 1) == b"abc"


def test_truncating_at_the_end_changes_nothing() -> None:
    batches, _ = filled([(5, 1, 0), (7, 2, 0)])
    batches.truncate(batches.end_offset)
    assert (batches.end_offset, batches.read(0, 1 << 20)) == (3, bytes(5) + bytes([1]) * 7)
