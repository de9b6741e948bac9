"""Sources of twins: directories, snapshots, segments and captures, whole and damaged."""

import re
import shutil
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.twin import SourceError, changes, read_history, twin_state

from ..rows import each_row
from .directories import CLUSTER_ID, files_of, write_directory

CAPTURES = Path(__file__).parents[1] / "captures"
PARTITION = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_directory(tmp_path_factory.mktemp("source") / "data")


@pytest.fixture
def copy(directory: Path, tmp_path: Path) -> Path:
    return shutil.copytree(directory, tmp_path / "copy")


def log_of(directory: Path) -> Path:
    return min((directory / PARTITION).glob("*.log"))


def test_a_twin_has_the_state_of_the_directory_and_leaves_it_alone(copy: Path) -> None:
    for each in [copy, *copy.rglob("*")]:
        each.chmod(0o555 if each.is_dir() else 0o444)
    before = files_of(copy)
    with Controller.sync(twin_of=copy) as twin:
        assert twin.cluster_id == CLUSTER_ID
        assert twin.node_id == 3000
        assert [(broker.broker_id, broker.fenced) for broker in twin.state.brokers()] == [(1, False), (2, True)]
        orders = twin.state.topic("orders")
        assert [each.leader for each in orders.partitions] == [1, 1, 1]
        assert [config.to_json() for config in twin.state.configs()] != []
        twin.state.create_topic("new", replicas=[[1]])
        twin.reset(state=True)
        assert [topic.name for topic in twin.state.topics()] == ["orders", "payments"]
    assert files_of(copy) == before


def test_a_running_controller_can_be_copied(tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path, brokers=1) as real, Controller.sync(twin_of=tmp_path) as twin:
        assert twin.cluster_id == real.cluster_id
        assert [broker.broker_id for broker in twin.state.brokers()] == [1]
        assert twin.node_id == 3001


def test_registrations_of_the_sources_controllers_stay(directory: Path) -> None:
    with Controller.sync(twin_of=directory) as twin:
        assert set(twin.running.controller.image.cluster.controllers) == {7, 3000}


@each_row("version", ["3.7.2", "3.8.1", "3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0"])
def test_a_capture_of_each_release_becomes_a_twin_of_that_release(version: str) -> None:
    capture = CAPTURES / "releases" / f"kafka-{version}.pcapng.gz"
    history = read_history(capture)
    assert history.notes == []
    assert history.start_offset == 0
    with Controller.sync(twin_of=capture) as twin:
        assert twin.running.config.release == version.rpartition(".")[0]
        assert [broker.broker_id for broker in twin.state.brokers()] == [1, 2]
        assert [topic.name for topic in twin.state.topics()] == ["__consumer_offsets"]


def test_a_captured_snapshot_is_a_beginning(tmp_path: Path) -> None:
    own = {"metadata_log_max_record_bytes_between_snapshots": 400, "metadata_max_retention_bytes": 1}
    with Controller.sync(brokers=1, **own) as controller:  # type: ignore[arg-type]
        controller.state.create_topic("orders", replicas=[[1]])
        controller.state.snapshot()
        controller.start_broker(2)
        controller.wait_until(lambda: not controller.state.broker(2).fenced)
        assert controller.verify(at_least=1, match="FetchSnapshot")
        controller.write_journal(tmp_path / "run.pcapng")
        topics = [topic.name for topic in controller.state.topics()]
    history = read_history(tmp_path / "run.pcapng")
    assert [topic.name for topic in history.moment().image.topics.by_id.values()] == topics == ["orders"]


def test_a_snapshot_and_the_log_after_it_agree_with_the_log(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "data", metadata_log_max_record_bytes_between_snapshots=400)
    whole = read_history(directory)
    snapshots = sorted((directory / PARTITION).glob("*.checkpoint"))
    assert len(snapshots) > 1
    assert whole.snapshot is None
    log_of(directory).unlink()
    later = read_history(directory)
    assert later.snapshot is not None
    assert 0 < later.start_offset < later.end_offset == whole.end_offset
    assert changes(whole.moment().image, later.moment().image) == []
    with pytest.raises(
        SourceError, match=r"there is no state at 3; it has a snapshot of all up to \d+, and the records"
    ):
        later.moment(3)


def test_a_checkpoint_alone_is_a_source(tmp_path: Path) -> None:
    with Controller.sync(brokers=1, cluster_id=CLUSTER_ID) as controller:
        saved = controller.state.save(tmp_path)
        named = shutil.copy(saved, tmp_path / "any-name")
    for path in (saved, named):
        history = read_history(path)
        assert history.cluster_id == CLUSTER_ID
        assert history.end_offset == int(saved.name[:20])
        assert list(history.moment().image.cluster.brokers) == [1]


@pytest.mark.parametrize("removed_bytes", [1, 30, 200])
def test_a_torn_end_is_left_out_with_a_line(copy: Path, removed_bytes: int) -> None:
    log = log_of(copy)
    whole = read_history(copy).end_offset
    log.write_bytes(log.read_bytes()[:-removed_bytes])
    history = read_history(copy)
    assert 0 < history.end_offset < whole
    (note,) = history.notes
    assert note.startswith(f"{log.name} is damaged at byte ")
    about = re.search(r"it has (\d+) bytes, of which (\d+) are given", note)
    assert about is None or int(about[1]) - int(about[2]) == removed_bytes
    assert about is not None or removed_bytes > 1
    with Controller.sync(twin_of=copy) as twin:
        assert [topic.name for topic in twin.state.topics()] == ["orders", "payments"]


def test_damage_in_the_middle_ends_the_state_there(copy: Path) -> None:
    log = log_of(copy)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log.write_bytes(data)
    history = read_history(copy)
    (note,) = history.notes
    assert "is damaged at byte" in note
    assert 0 < history.end_offset < 30


def test_the_zeros_of_a_preallocated_segment_are_its_end(copy: Path) -> None:
    log = log_of(copy)
    log.write_bytes(log.read_bytes() + bytes(4096))
    assert read_history(copy).notes == []


def test_a_damaged_snapshot_is_left_out_with_a_line(copy: Path) -> None:
    (copy / PARTITION / f"{10:020d}-{1:010d}.checkpoint").write_bytes(b"not a snapshot")
    history = read_history(copy)
    assert history.notes == [f"{10:020d}-{1:010d}.checkpoint is left out: " + history.notes[0].partition(": ")[2]]
    assert twin_state(history, history.moment()).node_id == 3000


@each_row(
    ("name", "content", "reason"),
    [
        ("empty", None, "there is no metadata log to begin with"),
        ("notes.txt", b"hello", "neither a data directory, a snapshot, a segment nor a capture: snapshot notes.txt: "),
        ("none", b"", "neither a data directory, a snapshot, a segment nor a capture"),
        ("broken.pcap", b"\xd4\xc3\xb2\xa1", "broken.pcap"),
        (f"{5:020d}.log", b"\0" * 100, "there is no metadata log to begin with"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=reason):
        read_history(path)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere: cannot be read: No such file or directory"):
        read_history(tmp_path / "nowhere")


def test_a_twin_needs_a_metadata_version(directory: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no metadata.version up to offset 0"):
        Controller.sync(twin_of=directory, twin_at=0)


def test_a_twin_has_no_other_state(directory: Path) -> None:
    with pytest.raises(ValueError, match="give state or twin_of"):
        Controller.sync(twin_of=directory, state=directory)
