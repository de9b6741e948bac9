"""A fleet that the system's limits do not allow is refused with the limit and what to do about it."""

from pathlib import Path

import pytest
from mockraft.brokers.fleet import limits

from ...cli.cli import invoke, one_line


def limit(monkeypatch: pytest.MonkeyPatch, *, files: int | None, ports: int | None) -> None:
    monkeypatch.setattr(limits, "files_max", lambda: files)
    monkeypatch.setattr(limits, "ports_max", lambda: ports)


@pytest.mark.parametrize(
    ("brokers", "processes", "shares", "said"),
    [
        (1_872, 2, True, None),
        (1_873, 2, True, "2 processes need 937 connections in each"),
        (937, 1, True, "a process may open 1,000 files: raise the limit (ulimit -Hn), or give --processes 2"),
        (312, 1, False, None),
        (313, 1, False, "313 brokers in 1 processes need 939 connections in each"),
        (5_000, 50, True, None),
        (5_001, 50, True, "5,001 brokers need 5,001 connections to the controller, and the system has 5,000 ports"),
        (1_667, 50, False, "widen the range (sysctl -w net.ipv4.ip_local_port_range='1024 65535')"),
    ],
)
def test_a_shortage_names_the_limit(
    monkeypatch: pytest.MonkeyPatch, brokers: int, processes: int, shares: bool, said: str | None
) -> None:
    limit(monkeypatch, files=1_000, ports=5_000)
    found = limits.shortage(brokers, processes, shares_replication=shares)
    assert found is None if said is None else said in (found or "")


def test_unlimited_systems_have_no_shortage(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, files=None, ports=None)
    assert limits.shortage(1_000_000, 1, shares_replication=False) is None


def test_reads_the_port_range_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "range"
    monkeypatch.setattr(limits, "_PORT_RANGE", path)
    assert limits.ports_max() is None
    path.write_text("32768\t60999\n")
    assert limits.ports_max() == 28_232


def test_the_command_refuses_a_fleet_that_cannot_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, files=1_000, ports=28_232)
    done = invoke("fleet", "--bootstrap-controller", "127.0.0.1:9", "--brokers", 50_000)
    assert done.exit_code == 2
    assert "50,000 connections" in one_line(done.output)
