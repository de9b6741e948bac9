"""Directories that take no new replicas, by the broker's own file or the cluster's configuration (KIP-1066)."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft import Controller
from mockraft.brokers.log_dirs.cordoning import CordoningError
from mockraft.server.controller.result import ControllerResult
from mockraft.wire import api_keys
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

from ..waiting import until

Cluster = Any
D0, D1, D2 = ("/simulated/d0", "/simulated/d1", "/simulated/d2")


def configure(controller: Controller, value: str | None, broker: str = "1") -> None:
    """The metadata log says what cordoned.log.dirs is, for one broker or ("") for all."""
    record = ConfigRecord(resource_type=4, resource_name=broker, name="cordoned.log.dirs", value=value)
    running = controller.running
    running.controller.commit(ControllerResult([RecordAt(record, 0)], None), running.clock.now_ms())


def paths(broker: Any, directory_ids: Any) -> list[str]:
    return sorted(log_dir.path for log_dir in broker.config.log_dirs if log_dir.directory_id in directory_ids)


async def told(cluster: Cluster, *expected: str) -> None:
    """The controller knows that just these are cordoned."""
    broker = cluster.brokers[1]
    await until(lambda: cluster.image.cluster.brokers[1].cordoned_log_dirs is not None)
    await until(lambda: paths(broker, cluster.image.cluster.brokers[1].cordoned_log_dirs) == sorted(expected))


async def places(cluster: Cluster, topic: str, partitions: int = 2) -> list[str]:
    """Directories of a new topic's replicas."""
    return paths(cluster.brokers[1], await cluster.placed(await cluster.create(topic, *[[1]] * partitions)))


async def test_directories_cordoned_by_the_file_are_in_heartbeats_after_catching_up(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=3, cordoned_log_dirs=f"{D0}, {D2}")
    await told(cluster, D0, D2)
    heartbeats = [request.cordoned_log_dirs for request in cluster.asked(api_keys.BROKER_HEARTBEAT)]
    caught_up = next(number for number, cordoned in enumerate(heartbeats) if cordoned is not None)
    assert heartbeats[:caught_up] == [None] * caught_up != []
    assert all(paths(broker, cordoned) == [D0, D2] for cordoned in heartbeats[caught_up:])
    assert await places(cluster, "orders", 3) == [D1]


@pytest.mark.parametrize("value", ["/nope", f"{D0},/nope", f"*,{D0}"])
async def test_file_that_cordons_an_unknown_directory_is_refused(cluster: Cluster, value: str) -> None:
    with pytest.raises(CordoningError, match=r"cordoned\.log\.dirs"):
        cluster.joining(cordoned_log_dirs=value)


async def test_cordons_and_uncordons_while_it_runs_and_its_replicas_stay(cluster: Cluster) -> None:
    broker = await cluster.start()
    before = await cluster.placed(orders := await cluster.create("orders", [1], [1]))
    configure(cluster.controller, D1)
    await told(cluster, D1)
    assert broker.directories.is_cordoned(broker.directories.find(D1).directory_id)
    assert await places(cluster, "payments", 4) == [D0]
    assert cluster.directories(orders) == before
    assert [cluster.partition(orders, index).leader for index in range(2)] == [1, 1]
    configure(cluster.controller, None)
    await told(cluster)
    assert await places(cluster, "invoices", 4) == [D1], "the emptiest again"


async def test_star_cordons_all_and_new_replicas_go_to_the_first_directory(cluster: Cluster) -> None:
    await cluster.start(dirs=3)
    configure(cluster.controller, "*")
    await told(cluster, D0, D1, D2)
    assert await places(cluster, "orders", 3) == [D0]


async def test_its_own_setting_comes_before_the_clusters_and_that_before_the_file(cluster: Cluster) -> None:
    await cluster.start(dirs=3, cordoned_log_dirs=D0)
    await told(cluster, D0)
    configure(cluster.controller, D1, broker="")
    await told(cluster, D1)
    configure(cluster.controller, D2)
    await told(cluster, D2)
    configure(cluster.controller, "")
    await told(cluster)
    configure(cluster.controller, None)
    await told(cluster, D1)
    configure(cluster.controller, None, broker="")
    await told(cluster, D0)
    assert await places(cluster, "orders", 4) == [D1, D2]


async def test_invalid_setting_keeps_the_previous_value(cluster: Cluster) -> None:
    broker = await cluster.start()
    configure(cluster.controller, D0)
    await told(cluster, D0)
    configure(cluster.controller, "/nope")
    configure(cluster.controller, "2", broker="2")
    await until(lambda: broker.view.cordoned_log_dirs == "/nope")
    await cluster.heartbeats()
    await told(cluster, D0)
    assert await places(cluster, "orders") == [D1]


async def test_a_cordoned_directory_may_be_named_beforehand_or_by_the_metadata(cluster: Cluster) -> None:
    """Cordoning is about choosing: what somebody else chose is done, as in Kafka."""
    broker = await cluster.start(cordoned_log_dirs=D1)
    await told(cluster, D1)
    broker.directories.preferred["orders", 0] = broker.directories.find(D1).directory_id
    assert await places(cluster, "orders", 1) == [D1]


async def test_failed_directory_is_not_reported_as_cordoned_after_a_change(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=3)
    broker.fail_log_dir(D1)
    configure(cluster.controller, f"{D0},{D1}")
    await told(cluster, D0)
    assert await places(cluster, "orders") == [D2]
