import fcntl
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from mockraft.server.controller.log import data_dir
from mockraft.server.controller.log.data_dir import DataDir, DataDirError
from mockraft.server.controller.quorum.voter_set import ElectionState, ReplicaKey
from mockraft.wire import directory_ids, uuids

CLUSTER_ID = "vVmXkzINR52jzR994Gyb3Q"
ID = "5FA_GCXWTNqrLrpox6MRbQ"


@contextmanager
def opened(path: Path, cluster_id: str = CLUSTER_ID, node_id: int = 3000, seed: int = 1) -> Iterator[DataDir]:
    found = DataDir(path, cluster_id, node_id, random.Random(seed))
    try:
        yield found
    finally:
        found.close()


def test_files_are_in_kafkas_formats(tmp_path: Path) -> None:
    with opened(tmp_path / "made" / "here") as found:
        text = uuids.text_of(found.directory_id)
        meta = (found.path / "meta.properties").read_text().splitlines()
        assert meta[0].startswith("#")
        assert meta[1:] == [f"cluster.id={CLUSTER_ID}", f"directory.id={text}", "node.id=3000", "version=1"]
        topic = (found.partition_path / "partition.metadata").read_text()
        assert topic == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
        found.write_election(ElectionState(7, 3000), 1, [3000])
        assert (found.partition_path / "quorum-state").read_text() == (
            '{"leaderId":3000,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
        )
        found.write_leader_epochs([(1, 0), (7, 12)])
        assert (found.partition_path / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n7 12\n"


def test_comes_back_with_the_same_directory_id_and_epochs(tmp_path: Path) -> None:
    with opened(tmp_path, seed=1) as first:
        assert first.read_election() == ElectionState()
        assert first.read_leader_epochs() == []
        first.write_election(ElectionState(7, 3000), 1, [3000])
        first.write_leader_epochs([(1, 0), (7, 12)])
    with opened(tmp_path, seed=2) as second:
        assert second.directory_id == first.directory_id
        assert second.read_election() == ElectionState(7, 3000)
        assert second.read_leader_epochs() == [(1, 0), (7, 12)]


@pytest.mark.parametrize("is_formatted", [False, True])
def test_a_power_cut_takes_no_directory_of_an_open_data_dir(
    tmp_path: Path, synced: dict[Path, bytes | set[str]], is_formatted: bool
) -> None:
    path = tmp_path / "made" / "here"
    if is_formatted:
        path.mkdir(parents=True)
        (path / "meta.properties").write_text(f"cluster.id={CLUSTER_ID}\nnode.id=3000\nversion=1\ndirectory.id={ID}\n")
    with opened(path):
        assert synced[path] == {".lock", "meta.properties", "__cluster_metadata-0"}
        assert synced[path / "__cluster_metadata-0"] == {"partition.metadata"}
        if not is_formatted:
            assert synced[tmp_path] == {"made"}
            assert synced[tmp_path / "made"] == {"here"}


def test_an_election_is_remembered_in_the_format_of_the_kraft_version(tmp_path: Path) -> None:
    voted = ElectionState(7, None, ReplicaKey(2, bytes(range(16))))
    with opened(tmp_path) as found:
        found.write_election(voted, 1, [2, 3])
        assert found.read_election() == voted
        found.write_election(voted, 0, [2, 3])
        assert (found.partition_path / "quorum-state").read_text() == (
            '{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":2,"appliedOffset":0,'
            '"currentVoters":[{"voterId":2},{"voterId":3}],"data_version":0}'
        )
        assert found.read_election() == ElectionState(7, None, ReplicaKey(2, bytes(16)))


def test_reads_meta_properties_as_java_writes_them(tmp_path: Path) -> None:
    lines = ["#", "#Fri Nov 20 10:49:51 UTC 2026", "cluster.id=" + CLUSTER_ID, "version=1", "node.id=3000", ""]
    (tmp_path / "meta.properties").write_text("\n".join([*lines, f"directory.id={ID}", "x.y=z"]))
    with opened(tmp_path) as found:
        assert uuids.text_of(found.directory_id) == ID
    assert data_dir.cluster_id_of(tmp_path) == CLUSTER_ID


def test_a_directory_id_is_added_where_an_old_kafka_wrote_none(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(f"cluster.id={CLUSTER_ID}\nnode.id=3000\nversion=1\n")
    with opened(tmp_path, seed=1) as first:
        pass
    with opened(tmp_path, seed=2) as second:
        assert first.directory_id == second.directory_id


@pytest.mark.parametrize(("cluster_id", "node_id", "key"), [("other", 3000, "cluster.id"), (CLUSTER_ID, 1, "node.id")])
def test_another_controllers_dir_is_refused(tmp_path: Path, cluster_id: str, node_id: int, key: str) -> None:
    with opened(tmp_path):
        pass
    with (
        pytest.raises(DataDirError, match=rf"meta\.properties: {key} is .* not its data dir"),
        opened(tmp_path, cluster_id, node_id),
    ):
        pass
    with opened(tmp_path):
        pass


def test_a_log_without_meta_properties_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as found:
        (found.partition_path / "00000000000000000000.log").touch()
        (found.path / "meta.properties").unlink()
    with pytest.raises(DataDirError, match=r"a log but no meta\.properties"), opened(tmp_path):
        pass


@pytest.mark.parametrize("in_another_process", [False, True])
def test_it_is_opened_once(tmp_path: Path, in_another_process: bool) -> None:
    program = (
        "import random, sys; from pathlib import Path; from mockraft.server.controller.log.data_dir import DataDir\n"
        f"d = DataDir(Path(sys.argv[1]), {CLUSTER_ID!r}, 3000, random.Random(1)); print('open', flush=True); input()"
    )
    with ExitStack() as held:
        if in_another_process:
            command = [sys.executable, "-c", program, str(tmp_path)]
            other = held.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            held.callback(other.kill)
            assert other.stdout is not None
            assert other.stdout.readline() == b"open\n"
        else:
            held.enter_context(opened(tmp_path))
        for _ in range(2):
            with pytest.raises(DataDirError, match="another controller runs on this data dir"), opened(tmp_path):
                pass
    with opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("file", "path", "reason"), [("file", "file/dir", "Not a directory"), ("__cluster_metadata-0", ".", "File exists")]
)
def test_a_file_in_the_place_of_a_dir_is_a_clear_error(tmp_path: Path, file: str, path: str, reason: str) -> None:
    (tmp_path / file).touch()
    with pytest.raises(DataDirError, match=f"cannot be used: .*{reason}"), opened(tmp_path / path):
        pass


def test_a_read_only_dir_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(data_dir, "replace_file", refuse)
    with pytest.raises(DataDirError, match=r"cannot be used: .*Read-only file system"), opened(tmp_path):
        pass
    monkeypatch.undo()
    with opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("quorum-state", "", "read_election"),
        ("quorum-state", "[]", "read_election"),
        ("quorum-state", '{"leaderEpoch":"x"}', "read_election"),
        ("quorum-state", '{"leaderEpoch":1,"votedId":-1,"leaderId":1099511627776}', "read_election"),
        ("quorum-state", '{"leaderEpoch":1,"votedId":-1,"leaderId":2147483648}', "read_election"),
        ("quorum-state", '{"leaderEpoch":1,"votedId":-1,"leaderId":-2147483649}', "read_election"),
        ("quorum-state", '{"leaderEpoch":1099511627776,"votedId":-1,"leaderId":-1}', "read_election"),
        ("leader-epoch-checkpoint", "0\n1\nx 1\n", "read_leader_epochs"),
        ("leader-epoch-checkpoint", "0\n1\n1\n", "read_leader_epochs"),
    ],
)
def test_a_damaged_small_file_is_named(tmp_path: Path, name: str, text: str, read: str) -> None:
    with opened(tmp_path) as found:
        (found.partition_path / name).write_text(text)
        with pytest.raises(DataDirError, match=f"{name}: not a {name} file"):
            getattr(found, read)()


@pytest.mark.parametrize(
    ("name", "text", "read", "value"),
    [
        ("quorum-state", '{"leaderEpoch":2147483647,"votedId":-1,"leaderId":-1}', "read_election", "epoch 2147483647"),
        ("leader-epoch-checkpoint", "0\n1\n-1 0\n", "read_leader_epochs", "epoch -1"),
        ("leader-epoch-checkpoint", "0\n1\n2147483647 0\n", "read_leader_epochs", "epoch 2147483647"),
        ("leader-epoch-checkpoint", f"0\n1\n1 {2**63 - 1}\n", "read_leader_epochs", f"offset {2**63 - 1}"),
    ],
)
def test_a_number_that_leaves_no_room_is_named_with_its_file(
    tmp_path: Path, name: str, text: str, read: str, value: str
) -> None:
    with opened(tmp_path) as found:
        (found.partition_path / name).write_text(text)
        with pytest.raises(DataDirError, match=f"{name}: leader {value}|{name}: {value}"):
            getattr(found, read)()


@pytest.mark.parametrize("epoch", [-1, -(2**31)])
def test_a_negative_epoch_is_before_every_other(tmp_path: Path, epoch: int) -> None:
    with opened(tmp_path) as found:
        path = found.partition_path / "quorum-state"
        path.write_text(f'{{"leaderId":3000,"leaderEpoch":{epoch},"votedId":-1,"data_version":1}}')
        assert found.read_election().epoch == 0


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("meta.properties", "version=1", "version=7"),
        ("partition.metadata", "topic_id: AAAAAAAAAAAAAAAAAAAAAQ", "topic_id: AAAAAAAAAAAAAAAAAAAAAw"),
    ],
)
def test_a_file_of_another_format_or_topic_is_named(tmp_path: Path, name: str, old: str, new: str) -> None:
    with opened(tmp_path) as found:
        path = next(found.path.rglob(name))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataDirError, match=name), opened(tmp_path):
        pass


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("node.id=3000\ndirectory.id=xyz", r"directory\.id 'xyz' is not a uuid"),
        ("node.id=abc", r"node\.id abc is not a 32-bit integer"),
        ("node.id=2147483648", r"node\.id 2147483648 is not a 32-bit integer"),
        (f"node.id={'9' * 5000}", r"node\.id 9{20}… \(5,000 characters\) is not a 32-bit integer"),
    ],
)
def test_a_damaged_id_is_named(tmp_path: Path, given: str, reason: str) -> None:
    (tmp_path / "meta.properties").write_text(f"cluster.id={CLUSTER_ID}\n{given}\nversion=1\n")
    with pytest.raises(DataDirError, match=rf"meta\.properties: {reason}"), opened(tmp_path):
        pass


def test_uuids_are_drawn_as_kafka_draws_them() -> None:
    rng = random.Random(3)
    for _ in range(2000):
        uuid = directory_ids.draw_uuid(rng)
        assert uuid[6] >> 4 == 4
        assert uuid[8] >> 6 == 2
        assert len(uuids.text_of(uuid)) == 22
        assert not uuids.text_of(uuid).startswith("-")
    assert directory_ids.draw_uuid(random.Random(9)) == directory_ids.draw_uuid(random.Random(9))


def test_a_node_id_of_0_is_a_leader_and_may_be_voted_for(tmp_path: Path) -> None:
    with opened(tmp_path) as found:
        for election in (ElectionState(7, 0), ElectionState(7, None, ReplicaKey(0, bytes(16)))):
            found.write_election(election, 1, [0])
            assert found.read_election() == election


def test_an_old_kafkas_broker_id_is_the_node_id(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(f"cluster.id={CLUSTER_ID}\nbroker.id=3000\nversion=1\n")
    with opened(tmp_path):
        pass
    assert "node.id=3000" in (tmp_path / "meta.properties").read_text()


def test_the_cluster_id_is_found_in_any_meta_properties(tmp_path: Path) -> None:
    assert data_dir.cluster_id_of(tmp_path) is None
    path = tmp_path / "meta.properties"
    path.write_bytes(b"#\xff\ncluster.id=" + CLUSTER_ID.encode())
    assert data_dir.cluster_id_of(tmp_path) == CLUSTER_ID
    path.write_bytes(b"cluster.id=\\u12")
    with pytest.raises(DataDirError, match=r"meta\.properties: Malformed"):
        data_dir.cluster_id_of(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(DataDirError, match=r"meta\.properties: cannot be read: .*Is a directory"):
        data_dir.cluster_id_of(tmp_path)


def test_it_is_opened_once_on_a_system_without_locks_of_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fcntl, "F_OFD_SETLK", raising=False)
    with (
        opened(tmp_path),
        pytest.raises(DataDirError, match="another controller runs on this data dir"),
        opened(tmp_path),
    ):
        pass
