"""hosts.json: the shape of the proposal, kept whole whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mockraft.brokers.ids.host_map import HOSTS_FILE, LOCK_FILE, HostFile, HostMap, HostMapError

from ..rows import each_row

SEED = '{"h1": {"version": 0, "broker.id": 10}}'


def test_each_host_has_the_object_of_the_proposal(tmp_path: Path) -> None:
    with HostFile(tmp_path).changing() as hosts:
        hosts.set("h1", 10)
        hosts.set("h2", 11)
    assert json.loads((tmp_path / HOSTS_FILE).read_text()) == {
        "h1": {"version": 0, "broker.id": 10},
        "h2": {"version": 0, "broker.id": 11},
    }
    assert HostFile(tmp_path).read().ids == {"h1": 10, "h2": 11}


def test_higher_version_keeps_unknown_fields(tmp_path: Path) -> None:
    path = tmp_path / HOSTS_FILE
    path.write_text('{"h1": {"version": 3, "broker.id": 10, "rack": {"row": 1}}, "h2": {"version": 0, "broker.id": 2}}')
    with HostFile(tmp_path).changing() as hosts:
        hosts.set("h1", 12)
        hosts.set("h2", 2)
    assert json.loads(path.read_text())["h1"] == {"version": 3, "broker.id": 12, "rack": {"row": 1}}


def test_hosts_are_one_however_they_are_spelled(tmp_path: Path) -> None:
    (tmp_path / HOSTS_FILE).write_text('{"Broker-1.Example.": {"version": 0, "broker.id": 1}}')
    assert HostFile(tmp_path).read().ids == {"broker-1.example": 1}


@each_row(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        (SEED[:-5], "Expecting"),
        (SEED + "x", "Extra data"),
        ("[]", "expected an object"),
        ('{"h1": 10}', "expected an object with version and broker.id"),
        ('{"h1": {"broker.id": 10}}', "version null"),
        ('{"h1": {"version": "0", "broker.id": 10}}', 'version "0"'),
        ('{"h1": {"version": -1, "broker.id": 10}}', "version -1"),
        ('{"h1": {"version": 0}}', "broker.id null"),
        ('{"h1": {"version": 0, "broker.id": true}}', "broker.id true"),
        ('{"h1": {"version": 0, "broker.id": 1.0}}', "broker.id 1.0"),
        ('{"h1": {"version": 0, "broker.id": -1}}', "broker.id -1"),
        ('{"h1": {"version": 0, "broker.id": 2147483648}}', "broker.id 2147483648"),
        ('{"h1": {"version": 0, "broker.id": NaN}}', "NaN"),
        ('{"h1": {"version": 0, "broker.id": 1, "broker.id": 2}}', "the key is there twice"),
        ('{"h1": {"version": 0, "broker.id": 1}, "H1.": {"version": 0, "broker.id": 2}}', "duplicate host h1"),
        ('{"a b": {"version": 0, "broker.id": 1}}', "'a b' is no host"),
        ("[" * 100_000, "nested too deep"),
        ("\xff\xfe", "utf-8"),
    ],
)
def test_a_file_that_is_no_map_is_refused_and_never_written_over(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / HOSTS_FILE
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(HostMapError) as refused, HostFile(tmp_path).changing() as hosts:
        hosts.set("h1", 1)
    assert str(path) in str(refused.value)
    assert reason in str(refused.value)
    assert path.read_bytes() == text.encode("latin-1")


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    ids: dict[str, int] = {}
    try:
        ids = HostMap.read(data).ids
    except ValueError:
        ids = {}
    assert len(ids) <= len(data)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True),
        st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 9), st.dictionaries(st.text(), st.integers() | st.none())),
        max_size=8,
    )
)
def test_round_trips(entries: dict[str, tuple[int, int, dict[str, Any]]]) -> None:
    tree = {
        host: {**others, "version": version, "broker.id": broker_id}
        for host, (broker_id, version, others) in entries.items()
    }
    assert json.loads(HostMap.read(json.dumps(tree).encode()).write()) == tree


def test_an_error_in_the_middle_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def change_and_fail() -> None:
        with HostFile(tmp_path).changing() as hosts:
            hosts.set("h1", 99)
            hosts.remove("none")

    (tmp_path / HOSTS_FILE).write_text(SEED)
    with pytest.raises(KeyError):
        change_and_fail()
    assert (tmp_path / HOSTS_FILE).read_text() == SEED


def test_a_dir_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").write_text("")
        with pytest.raises(HostMapError, match=f"{path} is not a directory"):
            HostFile(path).read()
    (tmp_path / LOCK_FILE).mkdir()
    with pytest.raises(HostMapError, match="must be writable"), HostFile(tmp_path).changing():
        pass


def test_a_file_that_cannot_be_written_is_named_and_not_half_written(tmp_path: Path) -> None:
    (tmp_path / f"{HOSTS_FILE}.tmp").mkdir()
    with pytest.raises(HostMapError, match="cannot be written"), HostFile(tmp_path).changing() as hosts:
        hosts.set("h1", 1)
    assert not (tmp_path / HOSTS_FILE).exists()


def test_another_process_waits_for_the_lock_and_gives_up(tmp_path: Path) -> None:
    with HostFile(tmp_path).changing() as hosts:
        hosts.set("h1", 1)
        with pytest.raises(HostMapError, match="is locked"), HostFile(tmp_path).changing(timeout_s=0.1):
            pass
    assert HostFile(tmp_path).read().ids == {"h1": 1}


ADD_TWENTY = """
import sys
from pathlib import Path
from mockraft.brokers.ids.host_map import HostFile
folder, first = Path(sys.argv[1]), int(sys.argv[2])
for number in range(first, first + 20):
    with HostFile(folder).changing() as hosts:
        hosts.set(f"h{number}", len(hosts.ids))
"""


def test_concurrent_processes_lose_no_entry(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", ADD_TWENTY, str(tmp_path), str(first)]) for first in (0, 20, 40)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert sorted(HostFile(tmp_path).read().ids.values()) == list(range(60))
