"""Pieces of snapshots that come in any order, in bounded memory."""

import pyarrow as pa
from mockraft.spark_replay.decoding.snapshot_chunks import PIECE_BYTES, Chunk, Incomplete, SnapshotChunks

FRAME = pa.record_batch({"frame_no": [1]})
SIZE = 10_000


def test_many_small_pieces_are_given_up_by_the_memory_that_they_take() -> None:
    chunks = SnapshotChunks(kept_bytes_max=100 * PIECE_BYTES)
    given_up = [
        found
        for position in range(SIZE, 0, -2)
        for found in chunks.add(("snapshot",), Chunk(FRAME, position, b"x"), SIZE)
    ]
    assert all(isinstance(each, Incomplete) and each.held_bytes <= 100 for each in given_up)
    assert len(given_up) == SIZE // 2 // 100


def test_pieces_that_overlap_are_joined() -> None:
    data, chunks = bytes(range(200)), SnapshotChunks()
    cuts = [(100, 150), (20, 30), (90, 140), (0, 120), (150, 200)]
    pieces = [found for low, high in cuts for found in chunks.add((1,), Chunk(FRAME, low, data[low:high]), 200)]
    assert b"".join(each.data for each in pieces if isinstance(each, Chunk)) == data
    assert list(chunks.finish()) == []
    assert chunks._kept_bytes == 0


def test_nothing_is_kept_of_a_whole_snapshot() -> None:
    chunks = SnapshotChunks(kept_bytes_max=3 * PIECE_BYTES)
    for _ in range(10):
        pieces = [found for position in (4, 2, 0) for found in chunks.add((1,), Chunk(FRAME, position, b"xx"), 6)]
        assert [each.data for each in pieces if isinstance(each, Chunk)] == [b"xxxxxx"]
    assert chunks._kept_bytes == 0
