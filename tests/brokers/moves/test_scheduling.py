"""Movers are chosen by Java's hash of a topic's name, as Kafka chooses fetchers."""

from __future__ import annotations

from mockraft.brokers.moves.movers import mover_of, next_to_copy

from ...rows import each_row

SMALLEST = "polygenelubricants"
"""The hash of this word is Java's smallest integer."""


@each_row(
    ("topic", "partition", "movers", "mover"),
    [
        ("", 0, 3, 0),
        ("", 5, 3, 2),
        ("abc", 5, 4, (31 * 96_354 + 5) % 4),
        ("abc", 6, 1, 0),
        (SMALLEST, 0, 7, 0),
        (SMALLEST, 1, 10, (2**31 - 1) % 10),
    ],
)
def test_the_mover_follows_from_the_hash(topic: str, partition: int, movers: int, mover: int) -> None:
    assert mover_of(topic, partition, movers) == mover


def test_the_partition_in_progress_goes_on_while_it_is_ready() -> None:
    assert next_to_copy(("b", 1), {("a", 0), ("b", 1)}) == ("b", 1)
    assert next_to_copy(("b", 1), {("b", 0), ("a", 7), ("a", 3)}) == ("a", 3)
    assert next_to_copy(None, set()) is None
