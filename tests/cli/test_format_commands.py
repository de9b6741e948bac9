"""`mockraft format` and `mockraft random-uuid`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mockraft.brokers.log_dirs.ensemble import META_PROPERTIES, MetaProperties
from mockraft.wire.uuids import read_text

from ..rows import each_row
from .cli import Result, invoke

CLUSTER = "T0ta1ly_Mocked-Cluster"
BROKER = """process.roles=broker
node.id=8
log.dirs={0}/d1, {0}/d2
metadata.log.dir={0}/m
"""


def format_dirs(*arguments: str | Path) -> Result:
    return invoke("format", "--cluster-id", CLUSTER, *arguments)


def read(path: Path) -> MetaProperties:
    return MetaProperties.read((path / META_PROPERTIES).read_bytes())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(BROKER.format(tmp_path))
    return path


def test_formats_the_directories_that_are_named(tmp_path: Path) -> None:
    d1, d2 = tmp_path / "d1", tmp_path / "d2"
    done = format_dirs("--node-id", "3", "--log-dir", d1, "--log-dir", d2)
    assert done.exit_code == 0
    assert done.stdout.startswith("Bootstrap metadata: ")
    assert sorted(done.stdout.splitlines()[1:]) == [
        f"Formatting data directory {d2} with metadata.version 4.4-IV2.",
        f"Formatting metadata directory {d1} with metadata.version 4.4-IV2.",
    ]
    assert [read(path).node_id for path in (d1, d2)] == [3, 3]


def test_directories_of_broker_properties_are_formatted(tmp_path: Path, config: Path) -> None:
    assert format_dirs("--config", config).exit_code == 0
    metas = [read(tmp_path / name) for name in ("d1", "d2", "m")]
    assert {(meta.node_id, meta.cluster_id, meta.version) for meta in metas} == {(8, CLUSTER, 1)}
    assert len({meta.directory_id for meta in metas}) == 3


def test_directories_that_are_named_count_before_the_properties(tmp_path: Path, config: Path) -> None:
    assert format_dirs("--config", config, "--log-dir", tmp_path / "mine").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "server.properties"]


def test_second_format_needs_a_flag(tmp_path: Path, config: Path) -> None:
    format_dirs("--config", config)
    again = format_dirs("--config", config)
    assert again.exit_code == 4
    assert re.fullmatch(
        rf"mockraft format: Log directory {tmp_path}/(d1|d2|m) is already formatted\. Use --ignore-formatted to ignore "
        r"this directory and format the others\.\n",
        again.stderr,
    )
    passed_over = format_dirs("--config", config, "-g")
    assert passed_over.exit_code == 0
    assert passed_over.stdout == "All of the log directories are already formatted.\n"


@each_row(
    ("text", "complaint"),
    [
        ("node.id=8\n", "has no process.roles"),
        ("process.roles=broker,controller\nnode.id=8\n", "process.roles=broker,controller"),
        ("process.roles=broker\n", "node.id= is no id"),
        ("process.roles=broker\nnode.id=-1\n", "node.id=-1 is no id"),
        ("process.roles=broker\nnode.id=2147483648\n", "node.id=2147483648 is no id"),
        ("process.roles=\\u12\n", "Malformed"),
    ],
)
def test_properties_that_cannot_be_followed_are_a_bad_option(tmp_path: Path, text: str, complaint: str) -> None:
    config = tmp_path / "server.properties"
    config.write_text(text)
    done = format_dirs("--config", config)
    assert done.exit_code == 2
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == [config]


def test_reports_missing_requirements(tmp_path: Path, config: Path) -> None:
    for arguments, complaint in (
        ((), "say which broker"),
        (("--node-id", "1"), "say which directories"),
        (("--node-id", "9", "--config", config), "but node.id=8 in"),
        (("--node-id", "-1", "--log-dir", "d"), "--node-id"),
        (("--node-id", "2147483648", "--log-dir", "d"), "--node-id"),
        (("--config", tmp_path / "none"), "No such file"),
        (("--config", tmp_path), "Is a directory"),
    ):
        done = format_dirs(*arguments)
        assert done.exit_code == 2
        assert complaint in done.stderr


def test_a_broken_directory_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = format_dirs("--node-id", "1", "--log-dir", tmp_path / "file" / "d1")
    assert done.exit_code == 4
    assert f"{tmp_path / 'file' / 'd1'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_draws_a_cluster_id() -> None:
    drawn = invoke("random-uuid")
    assert drawn.exit_code == 0
    assert len(read_text(drawn.stdout.strip())) == 16
    assert invoke("random-uuid", "--seed", "1").stdout == invoke("random-uuid", "--seed", "1").stdout
