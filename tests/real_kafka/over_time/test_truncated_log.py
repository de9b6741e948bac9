"""A log whose beginning snapshots replaced: Kafka's controller and ours on copies of one data directory.

All that a follower may ask of such a log, offset by offset: from below its start, from within a batch, with an epoch
that diverges, and every part of a snapshot.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mockraft import Controller
from mockraft.kafka.child_process import wait_until
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.server.controller.log.snapshot import BOOTSTRAP, SnapshotId
from mockraft.server.running import RunningController
from mockraft.testing.options import ConfigOptions
from mockraft.wire import error_codes, record_batch
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.fetch_request import ReplicaState

from tools.blocking_connection import BlockingConnection

from ...configs import CLIENT_METRICS, SET, change_configs
from ...fetches import fetch_request, snapshot_request
from ..running import running
from .script import described_quorum, led_epoch

pytestmark = pytest.mark.real_kafka

CHANGES = (12, 12, 12, 12, 12, 2)
"""Changes in each epoch; the last is so short that the log, from its first snapshot on, has more than one."""
OBSERVER = 77
KEEPING_LITTLE: ConfigOptions = {
    "metadata_max_idle_interval_ms": 0,
    "metadata_log_max_record_bytes_between_snapshots": 1500,
    "metadata_max_retention_bytes": 5000,
}


class Log(NamedTuple):
    """The log that both begin with. `batches` are (first offset, last offset)."""

    start: int
    end: int
    epoch: int
    snapshots: list[SnapshotId]
    sizes: list[int]
    batches: list[tuple[int, int]]


class Followed(NamedTuple):
    """One of the two controllers: a connection, and the epoch in which it leads."""

    connection: BlockingConnection
    epoch: int

    def fetch(self, offset: int, last_epoch: int, **fields: Any) -> dict[str, Any]:
        """The partition as a follower gets it that ends at `offset` in `last_epoch`; of the records one batch."""
        message = fetch_request(offset, self.epoch, last_fetched_epoch=last_epoch, max_bytes=1, max_wait_ms=0, **fields)
        whole: Any = to_json(self.connection.exchange(message, 17), 17)
        tree: dict[str, Any] = whole["responses"][0]["partitions"][0]
        del tree["highWatermark"]
        return tree

    def fetch_snapshot(self, asked: dict[str, Any]) -> Any:
        fields = {"current_leader_epoch": self.epoch, **asked}
        message = snapshot_request(fields.pop("snapshot_id"), **fields)
        return to_json(self.connection.exchange(message, 1), 1)

    def observed_offset(self) -> int | None:
        """The end of the observer's log, as the leader describes it."""
        observers = described_quorum(self.connection)["observers"]
        return next((each["logEndOffset"] for each in observers if each["replicaId"] == OBSERVER), None)


def fill(data_dir: Path, port: int, cluster_id: str) -> Log:
    """Write a log of several epochs, with batches of one and of three records, until its beginning is gone."""

    def described(running: RunningController) -> Log:
        log = running.controller.log
        batches = [
            (batch.base_offset, batch.last_offset)
            for batch in record_batch.read_batches(log.read(log.start_offset, 1 << 20))
        ]
        ids, sizes = [each.id for each in log.snapshots], [each.size for each in log.snapshots]
        return Log(log.start_offset, log.end_offset, log.leader_epoch, ids, sizes, batches)

    options: ConfigOptions = {**KEEPING_LITTLE, "port": port, "cluster_id": cluster_id, "data_dir": data_dir}
    for epoch, changes in enumerate(CHANGES):
        with Controller.sync(**options) as controller:
            with closing(BlockingConnection(("127.0.0.1", port), "test", 30)) as connection:
                for number in range(changes):
                    names = [f"metrics-{index}" for index in range(1 + 2 * (number % 2))]
                    change = (SET, "interval.ms", str(1000 * (epoch + 1) + number))
                    changed = connection.exchange(
                        change_configs(*((CLIENT_METRICS, name, change) for name in names)), 1
                    )
                    assert {each.error_code for each in changed.responses} == {error_codes.NONE}
            log = controller.call(described, controller.running)
    assert log.start > 0
    assert len(log.snapshots) > 1
    return log


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Followed, Followed, Log]]:
    directory = tmp_path_factory.mktemp("truncated")
    cluster_id = random_uuid()
    kafka = KafkaController(directory / "kafka", cluster_id)
    mockraft = MockraftController(directory / "mockraft", cluster_id)
    assert mockraft.data_dir is not None
    log = fill(directory / "origin", kafka.port, cluster_id)
    for copy in (Path(kafka.properties["log.dirs"]), mockraft.data_dir):
        shutil.copytree(directory / "origin", copy)
    with running(kafka, formatted=True), running(mockraft, formatted=True):
        sides = followed(kafka), followed(mockraft)
        yield *sides, log
        for side in sides:
            side.connection.close()


def followed(controller: KafkaController | MockraftController) -> Followed:
    connection = BlockingConnection((controller.host, controller.port), "follower", 30)
    wait_until(lambda: led_epoch(described_quorum(connection)) >= 0, 60, "a high watermark")
    return Followed(connection, led_epoch(described_quorum(connection)))


def test_every_offset_and_epoch_is_answered_as_by_kafka(both: tuple[Followed, Followed, Log]) -> None:
    kafka, mockraft, log = both
    assert (kafka.epoch, mockraft.epoch) == (log.epoch + 1, log.epoch + 1)
    asked = [(offset, epoch) for offset in range(log.end) for epoch in range(log.epoch + 2)]
    differing = {}
    kinds = set()
    for offset, epoch in asked:
        theirs, ours = kafka.fetch(offset, epoch), mockraft.fetch(offset, epoch)
        if theirs != ours:
            differing[offset, epoch] = (theirs, ours)
        kinds.add((bool(theirs["records"]), "divergingEpoch" in theirs, "snapshotId" in theirs))
    assert len(kinds) == 3, "records, diverging epochs and snapshots were seen"
    assert differing == {}


def test_an_observer_within_a_batch_is_described_as_by_kafka(both: tuple[Followed, Followed, Log]) -> None:
    kafka, mockraft, log = both
    first, last = next(each for each in log.batches if each[1] > each[0] and each[0] > log.start)
    epoch = next(epoch for epoch in range(log.epoch + 1) if kafka.fetch(last, epoch)["records"])
    for offset in range(first, last + 2):
        for side in (kafka, mockraft):
            side.fetch(
                offset, epoch, replica_state=ReplicaState(replica_id=OBSERVER), replica_directory_id=bytes([7]) * 16
            )
        assert mockraft.observed_offset() == kafka.observed_offset(), (offset, first, last)


def parts(log: Log) -> dict[str, dict[str, Any]]:
    """Requests for parts of snapshots that exist."""
    asked: dict[str, dict[str, Any]] = {}
    for number, (snapshot_id, size) in enumerate(zip(log.snapshots, log.sizes, strict=True)):
        for position in (0, 1, size // 2, size - 1):
            for max_bytes in (0, 1, 100, 1 << 20):
                name = f"{max_bytes} bytes from {position} of snapshot {number}"
                asked[name] = {"snapshot_id": snapshot_id, "position": position, "max_bytes": max_bytes}
    return asked


def test_every_part_of_a_snapshot_is_kafkas(both: tuple[Followed, Followed, Log]) -> None:
    kafka, mockraft, log = both
    for name, asked in parts(log).items():
        theirs, ours = kafka.fetch_snapshot(asked), mockraft.fetch_snapshot(asked)
        (partition,) = theirs["topics"][0]["partitions"]
        assert partition["errorCode"] == error_codes.NONE, name
        for each in (theirs, ours):
            # Each names its own port.
            del each["nodeEndpoints"]
        assert ours == theirs, name


def refusals(log: Log) -> dict[str, tuple[dict[str, Any], int]]:
    """Requests for what is not there, and the error that Kafka intends; it cannot write it (a known difference)."""
    (newest, size), end = (log.snapshots[-1], log.sizes[-1]), log.snapshots[-1].end_offset
    absent = {
        "another epoch": SnapshotId(end, newest.epoch - 1),
        "another offset": SnapshotId(end - 1, newest.epoch),
        "a deleted one": SnapshotId(log.start - 1, 1),
        "beyond the log": SnapshotId(1 << 40, log.epoch),
        "below 0": SnapshotId(-1, -1),
        "that of formatting": BOOTSTRAP,
    }
    found: dict[str, tuple[dict[str, Any], int]]
    found = {name: ({"snapshot_id": each}, error_codes.SNAPSHOT_NOT_FOUND) for name, each in absent.items()}
    for position in (-1, size, size + 1, 1 << 40):
        asked = {"snapshot_id": newest, "position": position}
        found[f"position {position - size} from the end"] = (asked, error_codes.POSITION_OUT_OF_RANGE)
    old, later = {"snapshot_id": newest, "current_leader_epoch": 1}, {"snapshot_id": newest, "current_leader_epoch": 99}
    found["an old epoch"] = (old, error_codes.FENCED_LEADER_EPOCH)
    found["a later epoch"] = (later, error_codes.UNKNOWN_LEADER_EPOCH)
    return found


def test_what_is_not_there_is_refused_as_kafka_intends(both: tuple[Followed, Followed, Log]) -> None:
    kafka, mockraft, log = both
    for name, (asked, code) in refusals(log).items():
        theirs, ours = kafka.fetch_snapshot(asked), mockraft.fetch_snapshot(asked)
        assert (theirs["errorCode"], theirs["topics"]) == (error_codes.UNKNOWN_SERVER_ERROR, []), name
        assert ours["topics"][0]["partitions"][0]["errorCode"] == code, name


def test_kafka_closes_the_connection_at_a_negative_limit_and_ours_answers(both: tuple[Followed, Followed, Log]) -> None:
    kafka, mockraft, log = both
    asked = {"snapshot_id": log.snapshots[-1], "max_bytes": -1}
    assert mockraft.fetch_snapshot(asked)["errorCode"] == error_codes.UNKNOWN_SERVER_ERROR
    with pytest.raises(ConnectionError):
        kafka.fetch_snapshot(asked)
