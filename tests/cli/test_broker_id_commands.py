"""`mockraft broker-id`."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.ids.host_map import HOSTS_FILE
from mockraft.brokers.log_dirs.ensemble import META_PROPERTIES
from mockraft.testing.controller import SyncController

from .cli import Result, invoke


@pytest.fixture(scope="module")
def controller() -> Iterator[SyncController]:
    """A controller with one broker, 1, on localhost."""
    with (
        Controller.sync() as started,
        SimulatedBroker.sync(started.bootstrap, started.cluster_id, 1, host="localhost", serve_clients=False) as broker,
    ):
        broker.wait_until(BrokerState.RUNNING)
        yield started


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


def run(*arguments: str | Path) -> Result:
    return invoke("broker-id", *arguments)


def resolve(controller: SyncController, data_dir: Path, *arguments: str | Path) -> Result:
    where = ("--data-dir", data_dir, "--bootstrap-controller", controller.bootstrap)
    return run("resolve", *where, "--wait-ms", "1", *arguments)


def kept(data_dir: Path) -> dict[str, dict[str, int]]:
    tree: dict[str, dict[str, int]] = json.loads((data_dir / HOSTS_FILE).read_text())
    return tree


def test_prints_only_the_line_for_server_properties(controller: SyncController, data_dir: Path) -> None:
    first = resolve(controller, data_dir, "--host", "h2", "--id", "2")
    assert (first.exit_code, first.stdout) == (0, "node.id=2\n")
    assert first.stderr == "mockraft broker-id: h2 is broker 2: it was given\n"
    again = resolve(controller, data_dir, "--host", "h2")
    assert (again.exit_code, again.stdout) == (0, "node.id=2\n")
    assert again.stderr == "mockraft broker-id: h2 is broker 2: the host had it before\n"
    assert kept(data_dir) == {"h2": {"version": 0, "broker.id": 2}}


def test_the_id_of_meta_properties_counts_before_the_host_s(controller: SyncController, data_dir: Path) -> None:
    resolve(controller, data_dir, "--host", "h2", "--id", "2")
    disks = [data_dir / "d0", data_dir / "d1", data_dir / "empty"]
    for disk in disks:
        disk.mkdir()
    (disks[0] / META_PROPERTIES).write_text(f"version=1\ncluster.id={controller.cluster_id}\nnode.id=5\n")
    (disks[1] / META_PROPERTIES).write_text("version=7\n")
    named = [word for disk in disks for word in ("--log-dir", str(disk))]
    found = resolve(controller, data_dir, "--host", "h2", *named)
    assert found.stdout == "node.id=5\n"
    assert f"{disks[1]} cannot be read and says nothing" in found.stderr
    assert resolve(controller, data_dir, "--host", "h2", "--id", "6", *named).exit_code == 1
    (disks[1] / META_PROPERTIES).write_text(f"version=1\ncluster.id={controller.cluster_id}\nnode.id=6\n")
    unlike = resolve(controller, data_dir, "--host", "h2", *named)
    assert unlike.exit_code == 4
    assert "Stored node id 6 doesn't match" in unlike.stderr


def test_directory_of_another_cluster_is_refused(controller: SyncController, data_dir: Path) -> None:
    file = data_dir / META_PROPERTIES
    file.write_text("version=1\ncluster.id=another\nnode.id=5\n")
    refused = resolve(controller, data_dir, "--host", "h2", "--log-dir", data_dir)
    assert (refused.exit_code, refused.stdout) == (4, "")
    why = f"Invalid cluster.id in: {file}. Expected {controller.cluster_id}, but read another."
    assert refused.stderr.startswith(f"mockraft broker-id: {why}")
    assert not (data_dir / HOSTS_FILE).exists()


def test_new_id_is_created_only_on_request(controller: SyncController, data_dir: Path) -> None:
    refused = resolve(controller, data_dir, "--host", "h3")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "no id is known for this host: give one (--id), or allow --generate" in refused.stderr
    made = resolve(controller, data_dir, "--host", "h3", "--generate", "--json")
    assert json.loads(made.stdout) == {"host": "h3", "node.id": 1001, "source": "generated"}
    low = resolve(controller, data_dir, "--host", "h4", "--generate", "--reserve", "0")
    assert low.stdout == "node.id=1002\n"


def test_hosts_and_live_brokers_are_listed(controller: SyncController, data_dir: Path) -> None:
    (data_dir / HOSTS_FILE).write_text(
        '{"longer": {"version": 1, "broker.id": 7, "rack": "a"}, "h1": {"version": 0, "broker.id": 1}}'
    )
    assert run("list", "--data-dir", data_dir).stdout == "h1      1\nlonger  7\n"
    where = ("--data-dir", data_dir, "--bootstrap-controller", controller.bootstrap)
    assert run("list", *where).stdout == "h1      1  alive at localhost\nlonger  7  not alive\n"
    assert json.loads(run("list", *where, "--json").stdout) == {
        "longer": {"version": 1, "broker.id": 7, "rack": "a", "alive.at": []},
        "h1": {"version": 0, "broker.id": 1, "alive.at": ["localhost"]},
    }


def test_garbage_is_removed_on_demand_only(controller: SyncController, data_dir: Path) -> None:
    for host, broker_id in (("old", 1), ("localhost", 1), ("h2", 2)):
        tree = kept(data_dir) if (data_dir / HOSTS_FILE).exists() else {}
        (data_dir / HOSTS_FILE).write_text(json.dumps({**tree, host: {"version": 0, "broker.id": broker_id}}))
    where = ("--data-dir", data_dir, "--bootstrap-controller", controller.bootstrap)
    shown = run("collect-garbage", *where)
    assert shown.stdout == "garbage  old  1\n"
    assert "--yes removes them" in shown.stderr
    assert json.loads(run("collect-garbage", *where, "--json").stdout) == {"removed": False, "hosts": {"old": 1}}
    assert run("collect-garbage", *where, "--yes").stdout == "removed  old  1\n"
    assert run("collect-garbage", *where, "--yes").stdout == ""
    assert kept(data_dir).keys() == {"localhost", "h2"}


def test_invalid_use_and_missing_controller_have_different_exit_codes(
    controller: SyncController, data_dir: Path
) -> None:
    for arguments, code, complaint in (
        (("--id", "-1"), 2, "--id"),
        (("--id", "2147483648"), 2, "--id"),
        (("--host", "a b"), 1, "'a b' is no host"),
        (("--host", "h:9092", "--id", "2"), 1, "is no host"),
        (("--bootstrap-controller", "nowhere"), 2, "is not host:port"),
        (("--bootstrap-controller", "127.0.0.1:1"), 6, "127.0.0.1:1"),
        (("--command-config", str(data_dir / "none")), 2, "--command-config"),
        (("--data-dir", str(data_dir / "none"), "--id", "2"), 4, f"{data_dir / 'none'} is not a directory"),
    ):
        done = resolve(controller, data_dir, *arguments)
        assert done.exit_code == code, arguments
        assert complaint in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x10" + b"\xff" * 16])
def test_malformed_response_is_reported_and_the_next_controller_is_tried(
    controller: SyncController, data_dir: Path, answer: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1024)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        nonsense = f"127.0.0.1:{server.getsockname()[1]}"
        alone = resolve(controller, data_dir, "--host", "h2", "--id", "2", "--bootstrap-controller", nonsense)
        both = f"{nonsense},{controller.bootstrap}"
        helped = resolve(controller, data_dir, "--host", "h2", "--id", "2", "--bootstrap-controller", both)
        thread.join(30)
    assert alone.exit_code == 6
    assert f"mockraft broker-id: {nonsense}: " in alone.stderr
    assert "Traceback" not in alone.stderr
    assert helped.stdout == "node.id=2\n"


def test_truncated_map_is_reported_and_kept(controller: SyncController, data_dir: Path) -> None:
    (data_dir / HOSTS_FILE).write_text('{"h1": {"version": 0, "bro')
    for done in (
        resolve(controller, data_dir, "--host", "h1", "--id", "2"),
        run("list", "--data-dir", data_dir),
        run("collect-garbage", "--data-dir", data_dir, "--bootstrap-controller", controller.bootstrap, "--yes"),
    ):
        assert done.exit_code == 4
        assert f"{data_dir / HOSTS_FILE} is not a valid host map" in done.stderr
    assert (data_dir / HOSTS_FILE).read_text() == '{"h1": {"version": 0, "bro'
