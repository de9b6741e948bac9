"""The replicas of a broker: what it says of partitions, brokers and topics by its metadata."""

from __future__ import annotations

import pytest
from mockraft import Controller
from mockraft.brokers.channel import NotSentError
from mockraft.brokers.disks.failing_disk import FailingDisk
from mockraft.brokers.log_dirs.errors import LogError
from mockraft.brokers.partitions.isr_changes import RETRY_MS
from mockraft.brokers.partitions.replicas import Replicas
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_partition_response import AlterPartitionResponse
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.register_broker_record import BrokerEndpoint, RegisterBrokerRecord

from ...waiting import until
from .conftest import Brokers

PLAINTEXT, SSL = 0, 1


def replicas_of(brokers: Brokers, broker_id: int) -> Replicas:
    replicas = brokers.running[broker_id].replicas
    assert replicas is not None
    return replicas


async def test_a_topics_settings_are_kept_until_the_metadata_changes(brokers: Brokers, controller: Controller) -> None:
    await brokers.start(1)
    await brokers.create_topic("orders", assigned=[1])
    replicas = replicas_of(brokers, 1)
    before = replicas.topic_settings("orders")
    assert replicas.topic_settings("orders") is before
    change = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="77")
    controller.state.append([change])
    await until(lambda: replicas.topic_settings("orders").log.retention_ms == 77)
    assert replicas.topic_settings("payments").log == before.log


async def test_partitions_that_a_broker_lacks_are_no_unknown_ones(brokers: Brokers) -> None:
    await brokers.start(1, 2)
    key = await brokers.create_topic("orders", assigned=[1])
    assert replicas_of(brokers, 1).find(key).name == "orders-0"
    for asked, error_code in ((key, error_codes.NOT_LEADER_OR_FOLLOWER), ((key[0], 1), 3), ((bytes(16), 0), 3)):
        with pytest.raises(LogError) as refused:
            replicas_of(brokers, 2).find(asked)
        assert refused.value.error_code == error_code


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ([("PLAINTEXT", PLAINTEXT, 1), ("OTHER", PLAINTEXT, 2)], ("h", 1)),
        ([("TLS", SSL, 1), ("OTHER", PLAINTEXT, 2)], ("h", 2)),
        ([("TLS", SSL, 1)], None),
    ],
)
async def test_the_endpoint_is_on_the_listener_of_our_name_or_a_plain_one(
    brokers: Brokers, controller: Controller, listeners: list[tuple[str, int, int]], expected: tuple[str, int] | None
) -> None:
    await brokers.start(1)
    replicas = replicas_of(brokers, 1)
    end_points = [
        BrokerEndpoint(name=name, host="h", port=port, security_protocol=protocol) for name, protocol, port in listeners
    ]
    controller.state.append(
        [RegisterBrokerRecord(broker_id=9, incarnation_id=bytes(15) + b"\x09", end_points=end_points)]
    )
    broker = brokers.running[1]
    await until(lambda: broker.image is not None and 9 in broker.image.brokers)
    assert replicas.endpoint_of(9) == expected
    assert replicas.endpoint_of(10) is None


async def test_a_follower_is_fetched_until_its_directory_fails_and_stays_the_same_replica(brokers: Brokers) -> None:
    await brokers.start(1, 2)
    key = await brokers.create_topic("orders", assigned=[1, 2])
    replicas = replicas_of(brokers, 2)
    await until(lambda: 1 in replicas.fetchers and key in replicas.fetchers[1].partitions)
    hosted = replicas.hosted(key)
    replicas.apply(key)
    assert replicas.hosted(key) is hosted
    directory_id = brokers.running[2].logs.directory_of(key)
    assert directory_id is not None
    replicas.directory_offline(directory_id)
    assert key not in replicas.fetchers[1].partitions


async def test_a_slow_disk_delays_only_the_requests_for_its_replicas(brokers: Brokers) -> None:
    await brokers.start(1)
    key = await brokers.create_topic("orders", assigned=[1])
    replicas = replicas_of(brokers, 1)
    assert replicas.disk_delay_ms([key]) == 0
    for log_dir in brokers.running[1].logs.log_dirs:
        assert isinstance(log_dir.disk, FailingDisk)
        log_dir.disk.slow(7)
    assert replicas.disk_delay_ms([key, key]) == 7
    assert replicas.disk_delay_ms([(bytes(16), 0)]) == 0


async def test_refused_and_unanswered_isr_changes_are_counted_and_sent_again(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brokers.start(1)
    replicas, broker = replicas_of(brokers, 1), brokers.running[1]
    timers: list[tuple[object, ...]] = []
    monkeypatch.setattr(replicas._core.kernel, "after", lambda *timer: timers.append(timer))
    replicas._isr_changes_answered(AlterPartitionResponse())
    assert broker.refusals == {}
    replicas._isr_changes_answered(AlterPartitionResponse(error_code=error_codes.STALE_BROKER_EPOCH))
    replicas._isr_changes_failed(NotSentError())
    assert broker.refusals == {"STALE_BROKER_EPOCH": 1, "NotSentError": 1}
    assert timers == [("isr-changes", wait_ms, replicas._send_isr_changes) for wait_ms in (0, RETRY_MS, RETRY_MS)]
