"""Scheduling of copies: movers, replicas and order."""

from __future__ import annotations

from mockraft.brokers.moves.scheduling import mover_of, next_to_copy


def test_the_first_by_name_and_number_is_copied_first() -> None:
    assert next_to_copy(None, {("b", 0), ("a", 10), ("a", 9)}) == ("a", 9)
    assert next_to_copy(None, ()) is None


def test_started_copy_continues_until_its_log_is_removed() -> None:
    assert next_to_copy(("b", 0), {("a", 0), ("b", 0)}) == ("b", 0)
    assert next_to_copy(("b", 0), {("a", 0)}) == ("a", 0)


def test_every_partition_has_one_mover_and_every_mover_its_share() -> None:
    movers = [mover_of("orders", partition, 4) for partition in range(400)]
    assert {mover: movers.count(mover) for mover in set(movers)} == dict.fromkeys(range(4), 100)
    assert mover_of("orders", 3, 1) == 0


def test_hashes_as_java_does() -> None:
    # "polygenelubricants" hashes to Integer.MIN_VALUE, of which Kafka's Utils.abs makes 0.
    assert mover_of("", 5, 3) == 2
    assert mover_of("a", 0, 1_000_000) == 31 * 97
    assert mover_of("polygenelubricants", 0, 7) == 0
