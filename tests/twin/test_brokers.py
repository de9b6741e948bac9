"""Simulated brokers in place of those of the source."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.twin import read_history
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.register_broker_record import RegisterBrokerRecord

from ..cli.cli import started
from .directories import write_directory

CAPTURES = Path(__file__).parents[1] / "captures"


def test_live_brokers_continue_without_a_change_of_partitions() -> None:
    source = CAPTURES / "controller-4.3.1.pcap"
    with Controller.sync(twin_of=source, twin_at=100, clock="virtual", twin_brokers="live") as twin:
        epochs = {broker.broker_id: broker.epoch for broker in twin.state.brokers()}
        partitions = [topic.partitions for topic in twin.state.topics()]
        twin.advance(60_000)
        assert epochs == {broker.broker_id: broker.epoch for broker in twin.state.brokers()} == {1: 17, 2: 38}
        assert [topic.partitions for topic in twin.state.topics()] == partitions
        assert not any(broker.fenced for broker in twin.state.brokers())


def test_virtual_time_goes_on_from_that_of_the_source() -> None:
    history = read_history(CAPTURES / "controller-4.3.1.pcap")
    began_ms = history.moment(100).timestamp_ms
    with Controller.sync(twin_of=history, twin_at=100, clock="virtual", twin_brokers="live") as twin:
        twin.state.create_topic("late", replicas=[[1]])
        (created,) = [each for each in twin.state.metadata_log(0) if getattr(each.record, "name", "") == "late"]
        assert began_ms <= created.timestamp_ms < began_ms + 60_000


def test_fenced_brokers_come_back_only_with_all(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "data")
    with Controller.sync(twin_of=directory, clock="virtual", twin_brokers="live") as twin:
        assert sorted(twin.brokers) == [1]
        assert twin.state.topic("payments").partitions[0].leader == -1
        directories = [each.id for each in twin.state.broker(2).log_dirs]
    with Controller.sync(twin_of=directory, clock="virtual", twin_brokers="all") as twin:
        twin.advance(20_000)
        assert sorted(twin.brokers) == [1, 2]
        assert [each.id for each in twin.state.broker(2).log_dirs] == directories
        assert twin.state.topic("payments").partitions[0].leader == 2
        assert [sorted(each.isr) for each in twin.state.topic("orders").partitions] == [[1, 2]] * 3


def test_directories_stay_cordoned_by_the_paths_of_the_source(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = bytes(range(1, 17)), bytes(range(2, 18))
    broker = RegisterBrokerRecord(
        broker_id=1, incarnation_id=first, broker_epoch=1, log_dirs=[first, second], cordoned_log_dirs=[second]
    )
    paths = ConfigRecord(resource_type=4, resource_name="1", name="cordoned.log.dirs", value="/disks/d1")
    with Controller.sync(clock="virtual") as real:
        real.state.append([broker, paths])
        saved = real.state.save(tmp_path)
    with Controller.sync(twin_of=saved, clock="virtual", twin_brokers="all") as twin:
        twin.advance(20_000)
        assert not twin.state.broker(1).fenced
        assert [each.state for each in twin.state.broker(1).log_dirs] == ["online", "cordoned"]
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


def test_a_lost_directory_stays_offline_until_it_is_restored(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual") as real:
        broker = real.start_broker(1, log_dirs=(tmp_path / "d0", tmp_path / "d1"))
        for broker_id in (2, 3):
            real.start_broker(broker_id)
        real.state.create_topic("ledger", replicas=[[1], [1]])
        real.state.create_topic("notes", replicas=[[1, 2, 3]] * 2)
        real.advance(5_000)
        broker.fail_log_dir(tmp_path / "d1")
        real.advance(5_000)
        saved = real.state.save(tmp_path / "saved")
        lost = real.state.topic("ledger").partitions, real.state.topic("notes").partitions
        assert sorted(each.leader for each in lost[0]) == [-1, 1]
    with Controller.sync(twin_of=saved, clock="virtual", twin_brokers="live") as twin:
        twin.advance(60_000)
        assert (twin.state.topic("ledger").partitions, twin.state.topic("notes").partitions) == lost
        waited, restarted, restored, unknown = twin.plan(
            [
                {"wait": 5},
                {"restart": [1]},
                {"restore_directory": {"broker": 1, "directory": 0}},
                {"restore_directory": {"broker": 1, "directory": 0}},
            ]
        ).steps
        assert len(waited.after.offline) == 1
        assert waited.after.offline == restarted.after.offline
        assert restored.after.offline == frozenset()
        assert restored.after.under_replicated == frozenset()
        assert unknown.answers == ("broker 1 has no failed directory 0",)
        assert len(twin.state.broker(1).log_dirs) == 2


def test_the_command_runs_them() -> None:
    capture = CAPTURES / "releases" / "kafka-3.7.2.pcapng.gz"
    arguments = ("twin", "--from", capture, "--brokers", "all", "--port", 0)
    with started(*arguments, ready=r"mockraft ready .*\n") as (process, _):
        assert process.stdout is not None
        assert process.stdout.readline().startswith("mockraft brokers bootstrap_servers=127.0.0.1:")


def test_a_broker_that_was_unregistered_starts_with_its_last_directories(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual", data_dir=tmp_path / "data", node_id=9) as real:
        for broker_id in (1, 2):
            real.start_broker(broker_id, rack="a", log_dirs=())
        directories = [each.id for each in real.state.broker(2).log_dirs]
        real.plan([{"shut_down": [2]}, {"unregister": [2]}])
    with Controller.sync(twin_of=tmp_path / "data", clock="virtual", twin_brokers="live") as twin:
        for rack in ("a", "b"):
            broker = twin.start_broker(2, rack=rack)
            assert [each.id for each in twin.state.broker(2).log_dirs] == directories
            assert twin.state.broker(2).rack == rack
            broker.shut_down()
