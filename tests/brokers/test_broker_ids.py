"""The choice of a broker id: the proposal's table row by row, and ids resolved by host against a controller."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, SimulatedBroker
from mockraft.brokers.ids.broker_ids import Resolved, collect_garbage, resolve
from mockraft.brokers.ids.host_map import HOSTS_FILE, HostFile
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
from mockraft.brokers.ids.observed_cluster import ObservedCluster
from mockraft.wire.connection import endpoint_of

from ..rows import each_row
from ..topics import assigned, create_topics
from .conftest import started

SESSION_TIMEOUT_MS = 1_500
QUIET: dict[str, Any] = {"heartbeat_interval_ms": 50, "serve_clients": False}


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller(session_timeout_ms=SESSION_TIMEOUT_MS) as made:
        yield made


def observed(controller: Controller) -> ObservedCluster:
    return ObservedCluster([endpoint_of(controller.bootstrap)], controller.cluster_id)


async def alive(controller: Controller, *broker_ids: int) -> None:
    """Wait until just these brokers are registered and not fenced."""
    async with observed(controller) as cluster:
        assert await cluster.wait_for(lambda: set(cluster.alive) == set(broker_ids), 10_000)


async def running(controller: Controller, *broker_ids: int) -> list[SimulatedBroker]:
    return [await started(controller, each, host=f"h{each}", **QUIET) for each in broker_ids]


async def place(controller: Controller, *broker_ids: int) -> None:
    """Create a topic with a replica on each of these."""
    await create_topics(controller.bootstrap, assigned("used", *([each] for each in broker_ids)))


async def resolved(controller: Controller, folder: Path, host: str, **options: Any) -> Resolved:
    async with observed(controller) as cluster:
        steps = options.pop("steps", Steps())._replace(wait_ms=options.pop("wait_ms", 10_000))
        return await resolve(HostFile(folder), host, cluster, steps=steps, **options)


async def refusal(controller: Controller, folder: Path, host: str, **options: Any) -> Refusal:
    with pytest.raises(IdentityError) as refused:
        await resolved(controller, folder, host, **options)
    return refused.value.refusal


async def test_used_ids_and_live_brokers_are_read(controller: Controller) -> None:
    first, second = await running(controller, 1, 2)
    await place(controller, 1, 2)
    await second.kill()
    async with observed(controller) as cluster:
        assert cluster.used_ids == {1, 2}
        assert await cluster.wait_for(lambda: set(cluster.alive) == {1}, 10_000)
        assert cluster.alive[1] == {"h1"}
        assert cluster.controllers == {3000}
    await first.kill()


async def test_missing_controller_is_reported(controller: Controller) -> None:
    with pytest.raises(ConnectionError, match="metadata log"):
        async with ObservedCluster([("127.0.0.1", 1)], "none", timeout_ms=200):
            raise AssertionError("it cannot be entered")


async def test_a_host_that_lost_its_disks_gets_its_id_back(controller: Controller, tmp_path: Path) -> None:
    assert await resolved(controller, tmp_path, "h7", explicit=7) == Resolved(7, Source.EXPLICIT, "h7")
    (broker,) = await running(controller, 7)
    await place(controller, 7)
    await broker.kill()
    assert await resolved(controller, tmp_path, "H7.") == Resolved(7, Source.HOST, "h7")


async def test_an_id_that_stays_alive_is_not_the_host_s_any_more(controller: Controller, tmp_path: Path) -> None:
    await resolved(controller, tmp_path, "h7", explicit=7)
    (broker,) = await running(controller, 7)
    await place(controller, 7)
    assert await refusal(controller, tmp_path, "h7", wait_ms=1) is Refusal.NO_NEW_ONE
    new = await resolved(controller, tmp_path, "h7", wait_ms=1, steps=Steps(generate=True))
    assert new == Resolved(1001, Source.GENERATED, "h7")
    await broker.kill()


async def test_running_id_is_refused_and_not_stored(controller: Controller, tmp_path: Path) -> None:
    (broker,) = await running(controller, 7)
    steps = Steps(reuse_missing=True, generate=True)
    assert await refusal(controller, tmp_path, "h8", explicit=7, wait_ms=1, steps=steps) is Refusal.IN_USE
    assert await refusal(controller, tmp_path, "h8", stored=7, wait_ms=1, steps=steps) is Refusal.IN_USE
    assert await refusal(controller, tmp_path, "h8", stored=7, explicit=8) is Refusal.INCONSISTENT
    assert await refusal(controller, tmp_path, "h8", explicit=-1) is Refusal.BAD_ID
    assert await refusal(controller, tmp_path, "h:8", explicit=8) is Refusal.BAD_HOST
    assert await refusal(controller, tmp_path, "h8", explicit=3000) is Refusal.BAD_ID, "the controller's own"
    assert not (tmp_path / HOSTS_FILE).exists()
    await broker.kill()


async def test_missing_id_is_reclaimed_only_on_request(controller: Controller, tmp_path: Path) -> None:
    brokers = await running(controller, 1, 2, 3)
    await place(controller, 1, 2, 3)
    await brokers[1].kill()
    await alive(controller, 1, 3)
    assert await refusal(controller, tmp_path, "new") is Refusal.ONE_MISSING
    reuse = Steps(reuse_missing=True)
    assert await resolved(controller, tmp_path, "new", steps=reuse) == Resolved(2, Source.MISSING, "new")
    assert await refusal(controller, tmp_path, "newer", steps=reuse) is Refusal.NO_NEW_ONE, "it is reserved for new"
    assert await resolved(controller, tmp_path, "new", steps=reuse) == Resolved(2, Source.HOST, "new")
    (tmp_path / HOSTS_FILE).unlink()
    await brokers[2].kill()
    await alive(controller, 1)
    assert await refusal(controller, tmp_path, "newer", steps=reuse) is Refusal.SEVERAL_MISSING
    await brokers[0].kill()


async def test_concurrent_hosts_get_different_new_ids(controller: Controller, tmp_path: Path) -> None:
    hosts = [f"h{number}" for number in range(8)]
    async with observed(controller) as cluster:
        steps = Steps(generate=True)
        found = await asyncio.gather(*(resolve(HostFile(tmp_path), host, cluster, steps=steps) for host in hosts))
    assert sorted(each.broker_id for each in found) == list(range(1001, 1009))
    kept = json.loads((tmp_path / HOSTS_FILE).read_text())
    assert kept == {each.host: {"version": 0, "broker.id": each.broker_id} for each in found}
    again = await resolved(controller, tmp_path, "h3", steps=steps)
    assert again == Resolved(kept["h3"]["broker.id"], Source.HOST, "h3")


async def test_a_new_id_is_none_that_replicas_or_registrations_have(controller: Controller, tmp_path: Path) -> None:
    (broker,) = await running(controller, 2999)
    found = await resolved(controller, tmp_path, "new", steps=Steps(generate=True))
    assert found.broker_id == 3001
    await broker.kill()


async def test_garbage_is_shown_first_and_then_removed(controller: Controller, tmp_path: Path) -> None:
    (tmp_path / HOSTS_FILE).write_text(
        json.dumps({host: {"version": 0, "broker.id": n} for host, n in (("old", 1), ("h1", 1), ("down", 2))})
    )
    (broker,) = await running(controller, 1)
    hosts = HostFile(tmp_path)
    async with observed(controller) as cluster:
        assert collect_garbage(hosts, cluster, remove=False) == {"old": 1}
        assert hosts.read().ids == {"old": 1, "h1": 1, "down": 2}
        assert collect_garbage(hosts, cluster, remove=True) == {"old": 1}
        assert collect_garbage(hosts, cluster, remove=True) == {}
    assert hosts.read().ids == {"h1": 1, "down": 2}
    await broker.kill()


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


@each_row(("row", "expected"), TABLE)
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


@each_row(
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


@each_row(
    "name",
    ["", " ", ".", "a..b", "-a", "a-", "a b", "a\nb", "h:9092", "ü.example", "a" * 64, "a." * 127 + "bb", "1.2.3.400"],
)
def test_invalid_host_name_is_refused(name: str) -> None:
    with pytest.raises(IdentityError) as refused:
        checked_host(name)
    assert refused.value.refusal is Refusal.BAD_HOST


@each_row("broker_id", [-1, BROKER_ID_MAX + 1])
def test_an_id_that_no_broker_can_have_is_refused(broker_id: int) -> None:
    with pytest.raises(IdentityError, match="expected 0 to 2147483647"):
        checked_id(broker_id)
    assert checked_id(0) == 0
