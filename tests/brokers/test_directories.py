"""Directories of replicas: placement, a start with others than before (KIP-858), and cordoning (KIP-1066)."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.log_dirs.placement import CordoningError, DirectoryAt
from mockraft.server.controller.result import ControllerResult
from mockraft.wire import api_keys
from mockraft.wire.directory_ids import LOST, UNASSIGNED
from mockraft.wire.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.config_record import ConfigRecord

from ..topics import ask
from ..waiting import until
from .conftest import PATHS, Cluster, ids


def assignment(broker: SimulatedBroker, topic_id: bytes, directory_id: bytes) -> AssignReplicasToDirsRequest:
    """Somebody says that partition 0 lies there."""
    topics = [TopicData(topic_id=topic_id, partitions=[PartitionData(partition_index=0)])]
    return AssignReplicasToDirsRequest(
        broker_id=broker.config.broker_id,
        broker_epoch=broker.life.broker_epoch,
        directories=[DirectoryData(id=directory_id, topics=topics)],
    )


async def with_orders(cluster: Cluster, partitions: int, **options: Any) -> tuple[SimulatedBroker, bytes, list[bytes]]:
    """Broker 1 with topic orders: the broker, the topic's id, and the directory of each partition."""
    broker = await cluster.start(**options)
    topic_id = await cluster.create("orders", *[[1]] * partitions)
    return broker, topic_id, await cluster.placed(topic_id)


# Placement and assignments.


async def test_replicas_are_dealt_to_the_emptiest_directories_and_have_their_logs_there(cluster: Cluster) -> None:
    broker, topic_id, found = await with_orders(cluster, 7, dirs=3)
    assert sorted(found.count(directory_id) for directory_id in ids(broker)) == [2, 2, 3]
    for index, directory_id in enumerate(found):
        assert broker.logs.directory_of((topic_id, index)) == directory_id
    assert cluster.disks[1, PATHS[0]].exists("orders-0/partition.metadata")


async def test_a_directory_recorded_beforehand_comes_before_all_others(cluster: Cluster) -> None:
    broker = await cluster.start()
    broker.directories.preferred["orders", 0] = broker.directories.preferred["orders", 2] = ids(broker)[1]
    topic_id = await cluster.create("orders", [1], [1], [1])
    found = await cluster.placed(topic_id)
    assert found[0] == found[2] == ids(broker)[1]
    assert broker.directories.preferred == {}


async def test_a_replica_on_its_way_to_a_directory_counts_there(cluster: Cluster) -> None:
    broker = await cluster.start()
    (first,) = await cluster.placed(await cluster.create("orders", [1]))
    broker.directories.moving[bytes(16), 0] = broker.directories.moving[bytes(16), 1] = ids(broker)[1]
    assert first == ids(broker)[0]
    assert await cluster.placed(await cluster.create("payments", [1])) == [ids(broker)[0]]


async def test_when_a_log_cannot_be_made_in_one_directory_the_next_one_gets_it(cluster: Cluster) -> None:
    broker = await cluster.start()
    disk = broker.logs.log_dirs[0].disk
    assert isinstance(disk, FailingDisk)
    disk.fail()
    topic_id = await cluster.create("orders", [1])
    assert await cluster.placed(topic_id) == [ids(broker)[1]]
    await until(lambda: cluster.image.cluster.brokers[1].log_dirs == (ids(broker)[1],))


async def test_matching_directory_is_not_assigned_again(cluster: Cluster) -> None:
    broker, topic_id, _ = await with_orders(cluster, 3)
    before = len(cluster.asked(api_keys.ASSIGN_REPLICAS_TO_DIRS))
    broker = await cluster.restart(broker)
    await cluster.heartbeats()
    assert broker.directories.placed == {(topic_id, n): d for n, d in enumerate(cluster.directories(topic_id))}
    assert len(cluster.asked(api_keys.ASSIGN_REPLICAS_TO_DIRS)) == before


@pytest.mark.parametrize("dirs", [1, 2])
@pytest.mark.parametrize("said", [LOST, UNASSIGNED, b"\x77" * 16], ids=["LOST", "UNASSIGNED", "unknown"])
async def test_replica_in_another_directory_stays_and_the_metadata_is_corrected(
    cluster: Cluster, said: bytes, dirs: int
) -> None:
    broker, topic_id, (there,) = await with_orders(cluster, 1, dirs=dirs)
    before = len(cluster.asked(api_keys.ASSIGN_REPLICAS_TO_DIRS))
    await ask(cluster.controller.bootstrap, assignment(broker, topic_id, said))
    await until(lambda: len(cluster.asked(api_keys.ASSIGN_REPLICAS_TO_DIRS)) == before + 2)
    assert await until(lambda: cluster.directories(topic_id) == [there])
    assert broker.directories.placed == {(topic_id, 0): there}


async def test_a_deleted_topics_logs_go(cluster: Cluster) -> None:
    broker, _, _ = await with_orders(cluster, 2)
    await cluster.delete("orders")
    await until(lambda: not broker.directories.placed)
    assert broker.logs.held() == []
    assert not any("orders" in name for disk in cluster.disks.values() for name in disk.names())


async def test_a_log_of_a_topic_that_was_deleted_meanwhile_is_put_aside(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=1)
    await cluster.placed(await cluster.create("orders", [1]))
    await cluster.stop(broker)
    await cluster.delete("orders")
    again = await cluster.start_with(cluster.again(broker.config))
    (name,) = (name for name in cluster.disks[1, PATHS[0]].names() if name.startswith("orders-0"))
    assert name.endswith("-stray")
    assert again.directories.placed == {}


# Fenced or not.


def empty_disks(cluster: Cluster, broker: SimulatedBroker) -> tuple[DirectoryAt, ...]:
    """The broker's directories on new disks, with other ids."""
    cluster.disks.clear()
    return tuple(log_dir._replace(directory_id=bytes([n + 1]) * 16) for n, log_dir in enumerate(broker.config.log_dirs))


async def test_unfenced_before_assignments_are_confirmed_as_in_kafka_4_3_1(cluster: Cluster) -> None:
    broker, _, _ = await with_orders(cluster, 1)
    await cluster.stop(broker)
    again = SimulatedBroker(cluster.again(broker.config, log_dirs=empty_disks(cluster, broker)))
    cluster.brokers[1] = again
    again.start()
    again.directories.assignments._failures = 10
    await again.wait_until(BrokerState.RUNNING)
    assert again.queued_replica_to_dir_assignments == 1


async def test_kip_text_keeps_it_fenced_until_assignments_are_confirmed(cluster: Cluster) -> None:
    broker, topic_id, _ = await with_orders(cluster, 2)
    again = await cluster.restart(broker, log_dirs=empty_disks(cluster, broker), fenced_until_assigned=True)
    assert set(cluster.directories(topic_id)) == set(ids(again))
    exchanges = cluster.controller.journal.exchanges()
    kinds = (api_keys.ASSIGN_REPLICAS_TO_DIRS, api_keys.BROKER_HEARTBEAT)
    since = [e for e in exchanges if e.api_key in kinds and e.request.broker_epoch == again.life.broker_epoch]
    result = max(n for n, e in enumerate(since) if e.api_key == api_keys.ASSIGN_REPLICAS_TO_DIRS)
    assert all(e.request.want_fence for e in since[:result] if e.api_key == api_keys.BROKER_HEARTBEAT)


# Starting with other directories than before.


async def test_a_directory_that_is_offline_at_the_start_is_not_registered_and_its_replicas_are_left_alone(
    cluster: Cluster,
) -> None:
    broker, topic_id, before = await with_orders(cluster, 4)
    kept, gone = broker.config.log_dirs
    broker = await cluster.restart(broker, log_dirs=(kept,), offline_log_dirs={gone.path: "not readable"})
    await cluster.heartbeats()
    assert cluster.asked(api_keys.BROKER_REGISTRATION)[-1].log_dirs == [kept.directory_id]
    assert cluster.asked(api_keys.BROKER_HEARTBEAT)[-1].offline_log_dirs == []
    assert cluster.directories(topic_id) == before
    assert set(broker.directories.placed.values()) == {kept.directory_id}
    leaders = [cluster.partition(topic_id, index).leader for index in range(4)]
    assert leaders == [1 if directory_id == kept.directory_id else -1 for directory_id in before]

    fresh_id = await cluster.create("payments", [1])
    assert await cluster.placed(fresh_id) == [kept.directory_id]


async def test_replicas_of_a_replaced_disk_are_recreated_and_assigned(cluster: Cluster) -> None:
    broker, topic_id, before = await with_orders(cluster, 4)
    kept, gone = broker.config.log_dirs
    del cluster.disks[1, gone.path]
    fresh = gone._replace(directory_id=b"\x07" * 16)
    broker = await cluster.restart(broker, log_dirs=(kept, fresh))
    expected = [fresh.directory_id if each == gone.directory_id else each for each in before]
    await until(lambda: cluster.directories(topic_id) == expected)
    assert [broker.logs.directory_of((topic_id, index)) for index in range(4)] == expected


async def test_returning_directory_keeps_its_identity(cluster: Cluster) -> None:
    broker, topic_id, before = await with_orders(cluster, 4)
    broker.fail_log_dir(PATHS[1])
    await until(lambda: cluster.image.cluster.brokers[1].log_dirs == (ids(broker)[0],))
    broker.heal_log_dir(PATHS[1])
    assert not broker.directories.is_live(ids(broker)[1]), "not before the broker starts again"
    broker = await cluster.restart(broker)
    await cluster.heartbeats()
    assert broker.directories.has_offline is False
    assert cluster.directories(topic_id) == before
    assert all(cluster.partition(topic_id, index).leader == 1 for index in range(4))


async def test_a_broker_that_is_given_another_directory_registers_it(cluster: Cluster) -> None:
    broker, topic_id, (there,) = await with_orders(cluster, 1, dirs=1)
    added = broker.config.log_dirs[0]._replace(path=PATHS[1], directory_id=b"\x09" * 16)
    broker = await cluster.restart(broker, log_dirs=(*broker.config.log_dirs, added))
    assert set(cluster.image.cluster.brokers[1].log_dirs) == {there, added.directory_id}
    assert cluster.directories(topic_id) == [there]
    assert await cluster.placed(await cluster.create("payments", [1])) == [added.directory_id]


D0, D1, D2 = PATHS


def configure(controller: Controller, value: str | None, broker: str = "1") -> None:
    """The metadata log says what cordoned.log.dirs is, for one broker or ("") for all."""
    record = ConfigRecord(resource_type=4, resource_name=broker, name="cordoned.log.dirs", value=value)
    running = controller.running
    running.controller.commit(ControllerResult([RecordAt(record, 0)], None), running.clock.now_ms())


def paths(broker: Any, directory_ids: Any) -> list[str]:
    return sorted(log_dir.path for log_dir in broker.config.log_dirs if log_dir.directory_id in directory_ids)


async def expect_reported(cluster: Cluster, *expected: str) -> None:
    """The controller knows that just these are cordoned."""
    broker = cluster.brokers[1]
    await until(lambda: cluster.image.cluster.brokers[1].cordoned_log_dirs is not None)
    await until(lambda: paths(broker, cluster.image.cluster.brokers[1].cordoned_log_dirs) == sorted(expected))


async def places(cluster: Cluster, topic: str, partitions: int = 2) -> list[str]:
    """Directories of a new topic's replicas."""
    return paths(cluster.brokers[1], await cluster.placed(await cluster.create(topic, *[[1]] * partitions)))


async def test_directories_cordoned_by_the_file_are_in_heartbeats_after_catching_up(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=3, cordoned_log_dirs=f"{D0}, {D2}")
    await expect_reported(cluster, D0, D2)
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
    await expect_reported(cluster, D1)
    assert broker.directories.is_cordoned(broker.directories.find(D1).directory_id)
    assert await places(cluster, "payments", 4) == [D0]
    assert cluster.directories(orders) == before
    assert [cluster.partition(orders, index).leader for index in range(2)] == [1, 1]
    configure(cluster.controller, None)
    await expect_reported(cluster)
    assert await places(cluster, "invoices", 4) == [D1], "the emptiest again"


# A newer controller refuses such replicas.
@pytest.mark.parametrize("release", ["4.3"])
async def test_star_cordons_all_and_new_replicas_go_to_the_first_directory(cluster: Cluster) -> None:
    await cluster.start(dirs=3)
    configure(cluster.controller, "*")
    await expect_reported(cluster, D0, D1, D2)
    assert await places(cluster, "orders", 3) == [D0]


async def test_its_own_setting_comes_before_the_clusters_and_that_before_the_file(cluster: Cluster) -> None:
    await cluster.start(dirs=3, cordoned_log_dirs=D0)
    await expect_reported(cluster, D0)
    configure(cluster.controller, D1, broker="")
    await expect_reported(cluster, D1)
    configure(cluster.controller, D2)
    await expect_reported(cluster, D2)
    configure(cluster.controller, "")
    await expect_reported(cluster)
    configure(cluster.controller, None)
    await expect_reported(cluster, D1)
    configure(cluster.controller, None, broker="")
    await expect_reported(cluster, D0)
    assert await places(cluster, "orders", 4) == [D1, D2]


async def test_invalid_setting_keeps_the_previous_value(cluster: Cluster) -> None:
    broker = await cluster.start()
    configure(cluster.controller, D0)
    await expect_reported(cluster, D0)
    configure(cluster.controller, "/nope")
    configure(cluster.controller, "2", broker="2")
    await until(lambda: broker.view.cordoned_log_dirs == "/nope")
    await cluster.heartbeats()
    await expect_reported(cluster, D0)
    assert await places(cluster, "orders") == [D1]


async def test_a_cordoned_directory_may_be_named_beforehand_or_by_the_metadata(cluster: Cluster) -> None:
    """Cordoning is about choosing: what somebody else chose is done, as in Kafka."""
    broker = await cluster.start(cordoned_log_dirs=D1)
    await expect_reported(cluster, D1)
    broker.directories.preferred["orders", 0] = broker.directories.find(D1).directory_id
    assert await places(cluster, "orders", 1) == [D1]


async def test_failed_directory_is_not_reported_as_cordoned_after_a_change(cluster: Cluster) -> None:
    broker = await cluster.start(dirs=3)
    broker.fail_log_dir(D1)
    configure(cluster.controller, f"{D0},{D1}")
    await expect_reported(cluster, D0)
    assert await places(cluster, "orders") == [D2]
