"""The choice of a broker id: the proposal's table row by row, and properties of every combination."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import pytest
from mockraft.brokers.ids.identity import (
    BROKER_ID_MAX,
    Generate,
    IdentityError,
    Refusal,
    Source,
    Steps,
    Try,
    Use,
    checked_host,
    checked_id,
    decide,
    garbage,
    generate_id,
    spare_ids,
)

ALL = Steps(reuse_missing=True, generate=True)
Row = tuple[int | None, int | None, int | None, bool | None, Collection[int], Steps]

TABLE: list[tuple[Row, Try | Use | Generate | Refusal]] = [
    # given, stored, mapped, registered, spare, steps → what comes of it
    ((1, None, None, None, (), Steps()), Try(1, Source.EXPLICIT)),
    ((1, None, 7, None, (5,), ALL), Try(1, Source.EXPLICIT)),
    ((1, None, 7, True, (5,), ALL), Use(1, Source.EXPLICIT)),
    ((1, None, 7, False, (5,), ALL), Refusal.IN_USE),
    ((1, 2, None, None, (), Steps()), Refusal.INCONSISTENT),
    ((1, 2, 1, True, (1,), ALL), Refusal.INCONSISTENT),
    ((1, 1, 7, None, (), Steps()), Try(1, Source.EXPLICIT)),
    ((1, 1, 7, True, (), Steps()), Use(1, Source.EXPLICIT)),
    ((None, 2, None, None, (), Steps()), Try(2, Source.STORED)),
    ((None, 2, 7, True, (5,), ALL), Use(2, Source.STORED)),
    ((None, 2, 7, False, (5,), ALL), Refusal.IN_USE),
    ((None, None, 7, None, (5,), Steps()), Try(7, Source.HOST)),
    ((None, None, 7, True, (5,), Steps()), Use(7, Source.HOST)),
    ((None, None, 7, False, (5,), ALL), Use(5, Source.MISSING)),
    ((None, None, 7, False, (5, 6), ALL), Refusal.SEVERAL_MISSING),
    ((None, None, 7, False, (), ALL), Generate()),
    ((None, None, 7, False, (), Steps()), Refusal.NO_NEW_ONE),
    ((None, None, None, None, (5,), ALL), Use(5, Source.MISSING)),
    ((None, None, None, None, (5,), Steps()), Refusal.ONE_MISSING),
    ((None, None, None, None, (5,), Steps(generate=True)), Refusal.ONE_MISSING),
    ((None, None, None, None, (5,), Steps(stop_at_missing=False, generate=True)), Generate()),
    ((None, None, None, None, (5, 6), ALL), Refusal.SEVERAL_MISSING),
    ((None, None, None, None, (5, 6), Steps()), Refusal.SEVERAL_MISSING),
    ((None, None, None, None, (5, 6), Steps(True, False, True)), Generate()),
    ((None, None, None, None, (5, 6), Steps(True, False, False)), Refusal.NO_NEW_ONE),
    ((None, None, None, None, (), ALL), Generate()),
    ((None, None, None, None, (), Steps()), Refusal.NO_NEW_ONE),
    ((0, None, None, True, (), Steps()), Use(0, Source.EXPLICIT)),
    ((None, 0, None, True, (), Steps()), Use(0, Source.STORED)),
    ((None, None, 0, True, (), Steps()), Use(0, Source.HOST)),
]


def outcome(row: Row) -> Try | Use | Generate | Refusal:
    try:
        return decide(*row)
    except IdentityError as error:
        return error.refusal


@pytest.mark.parametrize(("row", "expected"), TABLE)
def test_the_table_of_the_proposal(row: Row, expected: Try | Use | Generate | Refusal) -> None:
    assert outcome(row) == expected


IDS = (None, 0, 1)
EVERY: list[Row] = list(
    itertools.product(
        IDS,
        IDS,
        IDS,
        (None, True, False),
        [spare for size in range(4) for spare in itertools.combinations((0, 1, 2), size)],
        [Steps(*flags) for flags in itertools.product((False, True), repeat=3)],
    )
)


def test_given_or_stored_id_is_used_or_refused() -> None:
    for row in EVERY:
        given = [each for each in row[:2] if each is not None]
        found = outcome(row)
        if len(set(given)) == 2:
            assert found is Refusal.INCONSISTENT
        elif given:
            assert found is Refusal.IN_USE if row[3] is False else isinstance(found, Try | Use) and found[0] == given[0]


def test_the_host_s_id_is_tried_before_anything_else_is_thought_of() -> None:
    for row in EVERY:
        explicit, stored, mapped, registered, _, _ = row
        if explicit is None and stored is None and mapped is not None and registered is not False:
            assert outcome(row) == (Use if registered else Try)(mapped, Source.HOST)


def test_no_id_is_taken_that_could_not_be_registered() -> None:
    for row in EVERY:
        found = outcome(row)
        if isinstance(found, Use) and found.source in (Source.EXPLICIT, Source.STORED, Source.HOST):
            assert row[3] is True


def test_without_the_optional_steps_no_id_is_taken_over_or_made_up() -> None:
    for row in EVERY:
        found = outcome(row)
        if row[5] == Steps():
            assert not isinstance(found, Generate)
            assert not (isinstance(found, Use) and found.source is Source.MISSING)


def test_each_optional_step_changes_only_its_own_outcome() -> None:
    for row in EVERY:
        found, spare, steps = outcome(row), row[4], row[5]
        if isinstance(found, Use) and found.source is Source.MISSING:
            assert steps.reuse_missing
            assert list(spare) == [found.broker_id]
        if isinstance(found, Generate):
            assert steps.generate
            assert not (spare and steps.stop_at_missing)


def test_missing_ids_are_those_with_replicas_less_those_alive() -> None:
    assert spare_ids({1, 2, 3}, {2, 9}) == {1, 3}


def test_a_new_id_is_above_all_that_were_and_above_those_for_people() -> None:
    assert generate_id(()) == 1001
    assert generate_id({1, 5, 1001, 1003}) == 1004
    assert generate_id({1, 5}, reserved_max=0) == 6
    assert generate_id({2, 2999}, 0, controllers={3000, 3001}) == 3002
    assert generate_id({2}, 0, controllers={3000}) == 3
    with pytest.raises(IdentityError) as refused:
        generate_id({BROKER_ID_MAX})
    assert refused.value.refusal is Refusal.NONE_LEFT


def test_entry_is_garbage_when_its_broker_runs_on_another_host() -> None:
    hosts = {"old": 1, "new": 1, "other": 2, "down": 3}
    assert garbage(hosts, {1: ["NEW."], 2: ["other", "10.0.0.2"]}) == {"old": 1}
    assert garbage(hosts, {}) == {}


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("Broker-1.Example.", "broker-1.example"),
        ("localhost", "localhost"),
        ("kafka_1", "kafka_1"),
        ("10.0.0.1", "10.0.0.1"),
        ("[FE80::1]", "fe80::1"),
    ],
)
def test_a_host_has_one_spelling(name: str, host: str) -> None:
    assert checked_host(name) == host


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "a..b", "-a", "a-", "a b", "a\nb", "h:9092", "ü.example", "a" * 64, "a." * 127 + "bb", "1.2.3.400"],
)
def test_invalid_host_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError) as refused:
        checked_host(name)
    assert refused.value.refusal is Refusal.BAD_HOST


@pytest.mark.parametrize("broker_id", [-1, BROKER_ID_MAX + 1])
def test_an_id_that_no_broker_can_have_is_refused(broker_id: int) -> None:
    with pytest.raises(IdentityError, match="expected 0 to 2147483647"):
        checked_id(broker_id)
    assert checked_id(0) == 0
