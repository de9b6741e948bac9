import contextlib
import json
import re
import resource
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mockraft import Controller
from mockraft.cli.serve import command
from mockraft.cli.serve.options import HEADINGS, OPTIONS, to_arguments
from mockraft.kafka.processes import wait_until
from mockraft.kafka_api.options import OptionError
from mockraft.wire.connection import FrameReader, read_response, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource

from tools.pages.serve_options import as_markdown

from ..budgets import soak
from ..rows import each_row
from .cli import DEADLINE_S, completed, invoke, started

READY = (
    r"mockraft ready bootstrap=(?P<host>\S+):(?P<port>\d+) cluster_id=(?P<cluster_id>\S+) "
    r"node_id=(?P<node_id>\d+) admin=off release=(?P<release>\S+) metadata_version=(?P<level>\d+|unknown)\n"
)
ANY_ID = "p66Y0sRpQNGVKjK4oTgauw"


class Served(NamedTuple):
    process: subprocess.Popen[str]
    host: str
    port: int
    cluster_id: str
    node_id: int
    levels: tuple[str, str]
    """The release and the level of metadata.version, as the ready line has them."""

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Signal it; gives the exit code and stderr. The ready line was all that it printed."""
        self.process.send_signal(number)
        printed, errors = self.process.communicate(timeout=DEADLINE_S)
        assert printed == ""
        return self.process.returncode, errors


def refusal(*options: str) -> tuple[int, str]:
    """Exit code and stderr of a start that must fail."""
    done = completed("serve", *options)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """`serve("--option", …)` starts `mockraft serve` on a free port and waits for its ready line."""
    with contextlib.ExitStack() as undo:

        def start(*options: str) -> Served:
            process, ready = undo.enter_context(started("serve", "--port", "0", *options, ready=READY))
            numbers, levels = (int(ready["port"]), int(ready["node_id"])), (ready["release"], ready["level"])
            return Served(process, ready["host"], numbers[0], ready["cluster_id"], numbers[1], levels)

        yield start


def ask(served: Served, message: Any, version: int) -> Any:
    """The answer, on a connection of its own."""
    with socket.create_connection((served.host, served.port), timeout=DEADLINE_S) as client_socket:
        client_socket.sendall(write_request(message, version, 1, "test"))
        reader = FrameReader()
        while not (frames := reader.receive_data(client_socket.recv(1 << 16))):
            pass
    return read_response(frames[0], message.api_key, version)


def test_prints_one_ready_line_and_answers(serve: Callable[..., Served]) -> None:
    served = serve("--node-id", "7", "--cluster-id", ANY_ID)
    assert (served.host, served.cluster_id, served.node_id) == ("127.0.0.1", ANY_ID, 7)
    assert ask(served, ApiVersionsRequest(), 0).error_code == 0
    code, _ = served.end()
    assert code == 0


def test_starts_with_the_stubs_of_a_file_or_reports_its_errors(serve: Callable[..., Served], tmp_path: Path) -> None:
    path = tmp_path / "stubs.json"
    refused = '{"match": {"api": "ApiVersions"}, "actions": [{"injectError": "CLUSTER_AUTHORIZATION_FAILED"}]}'
    path.write_text(f'[{refused}, {{"id": "late", "match": {{"api": "Fetch"}}}}]')
    served = serve("--stubs", str(path))
    assert ask(served, ApiVersionsRequest(), 0).error_code == 31
    code, errors = served.end()
    assert (code, "2 stubs, 0 faults" in errors, "stub late never served" in errors) == (0, True, True), errors
    path.write_text('[{"match": {"api": "ApiVersion"}}]')
    code, errors = refusal("--stubs", str(path))
    assert (code, "stubs[0].match.api" in errors, "did you mean ApiVersions" in errors) == (2, True, True), errors


async def test_starts_with_a_saved_state_and_its_cluster_or_reports_its_errors(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    async with Controller() as controller:
        saved = controller.state.save(tmp_path / "saved")
    served = serve("--initial-state", str(saved))
    assert served.cluster_id == controller.cluster_id
    assert served.end()[0] == 0
    (tmp_path / "wrong").write_text("hello")
    code, errors = refusal("--initial-state", str(tmp_path / "wrong"))
    assert code == 2
    assert "no saved state" in errors
    assert refusal("--initial-state", str(tmp_path / "nothing"))[0] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_connections_open(serve: Callable[..., Served], number: int) -> None:
    served = serve()
    with socket.create_connection((served.host, served.port)) as open_socket:
        code, errors = served.end(number)
        assert (code, "Traceback" in errors) == (0, False)
        assert open_socket.recv(1) == b""


def test_stops_although_no_broker_may_shut_down(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "stubs.json").write_text('{"faults": [{"kind": "shutdown_never_granted"}]}')
    served = serve("--brokers", "2", "--stubs", str(tmp_path / "stubs.json"))
    assert served.process.stdout is not None
    assert served.process.stdout.readline().startswith("mockraft brokers ")
    assert served.process.stderr is not None
    running = 0
    for line in served.process.stderr:
        running += "RECOVERY -> RUNNING" in line
        if running == 2:
            break
    else:
        pytest.fail("it ended before its brokers ran")
    code, errors = served.end()
    assert (code, "the brokers have 500 ms for a controlled shutdown" in errors) == (0, True)
    assert errors.count("PENDING_CONTROLLED_SHUTDOWN -> ") == 2


def test_stops_with_its_standard_input_if_asked() -> None:
    with started("serve", "--port", "0", "--until-stdin-ends", ready=READY, stdin=subprocess.PIPE) as (process, _):
        assert process.stdin is not None
        process.stdin.write("what comes is dropped\n")
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0


def test_draws_a_new_cluster_id_each_time_unless_seeded(serve: Callable[..., Served]) -> None:
    assert serve().cluster_id != serve().cluster_id
    assert serve("--seed", "5").cluster_id == serve("--seed", "5").cluster_id


def test_data_directory_keeps_the_cluster(serve: Callable[..., Served], tmp_path: Path) -> None:
    first = serve("--data-dir", str(tmp_path / "data"))
    assert first.end()[0] == 0
    again = serve("--data-dir", str(tmp_path / "data"))
    assert again.cluster_id == first.cluster_id


def test_refuses_another_clusters_data_directory(serve: Callable[..., Served], tmp_path: Path) -> None:
    first = serve("--data-dir", str(tmp_path))
    assert first.end()[0] == 0
    code, errors = refusal("--port", "0", "--data-dir", str(tmp_path), "--cluster-id", ANY_ID)
    assert code == 4
    assert first.cluster_id in errors
    assert ANY_ID in errors
    assert "Traceback" not in errors


def test_refuses_a_data_directory_in_use(serve: Callable[..., Served], tmp_path: Path) -> None:
    first = serve("--data-dir", str(tmp_path))
    code, errors = refusal("--port", "0", "--data-dir", str(tmp_path), "--cluster-id", first.cluster_id)
    assert (code, str(tmp_path) in errors, "Traceback" in errors) == (4, True, False)


def test_refuses_a_data_directory_of_a_newer_release(tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path) as newer:
        cluster_id = newer.cluster_id
    code, errors = refusal("--port", "0", "--data-dir", str(tmp_path), "--cluster-id", cluster_id, "--release", "3.9")
    assert (code, "Traceback" in errors) == (4, False)
    assert "metadata.version 33 is not supported by controllers of Kafka 3.9; serve with --release 4.4" in errors


def test_names_the_release_of_an_older_log(serve: Callable[..., Served], tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path, release="3.9"):
        pass
    lower = (
        "the log's metadata.version is 3.9-IV0 (21), and a new log of Kafka 4.4 begins with 4.4-IV2 (33);"
        " for a controller of its release start with --release 3.9"
    )
    for options, release, is_lower in [((), "4.4", True), (("--release", "3.9"), "3.9", False)]:
        served = serve("--data-dir", str(tmp_path), *options)
        assert served.levels == (release, "21")
        assert (lower in served.end()[1]) == is_lower


def test_does_not_know_the_level_of_a_log_that_it_has_not_fetched(serve: Callable[..., Served]) -> None:
    assert serve("--controller-quorum-bootstrap-servers", "127.0.0.1:1").levels == ("4.4", "unknown")


def test_reports_a_port_in_use(serve: Callable[..., Served]) -> None:
    taken = serve().port
    code, errors = refusal("--port", str(taken))
    assert code == 3
    assert f"cannot listen on 127.0.0.1:{taken}" in errors
    assert "Traceback" not in errors


@each_row(
    "options",
    [
        ("--metadata-version", "5.0-IV0"),
        ("--metadata-version", "6"),
        ("--log-level", "loud"),
        ("--cluster-id", "with space"),
        ("--port", "70000"),
        ("--admin-port", "on"),
        ("--virtual-clock",),
        ("--admin-port", "70000"),
        ("--admin-port", "0", "--admin-host", "0.0.0.0"),
        ("--admin-port", "0", "--admin-token-file", "nowhere"),
        ("--controllers", "0"),
        ("--controllers", "3", "--controller-quorum-voters", "3000@127.0.0.1:9093"),
        ("--controllers", "3", "--advertised-port", "9093"),
        ("--controller-quorum-voters", "3000"),
        ("--initial-controllers", "3000@127.0.0.1:9093"),
        ("--super-users", "admin"),
        ("--profile", "kip-9"),
        ("--port", "65534", "--controllers", "3"),
        ("--schemas", "nowhere"),
        ("--server-property", "num.partitions"),
        ("--server-property", "num.partition=1"),
        ("--no-such-option",),
    ],
)
def test_refuses_bad_options(options: tuple[str, ...]) -> None:
    code, errors = refusal(*options)
    assert code == 2
    assert "Traceback" not in errors


def test_a_metadata_version_before_the_first_one_of_a_new_log_is_its_own_options_error() -> None:
    code, errors = refusal("--release", "3.9", "--metadata-version", "3.0")
    assert (code, "mockraft serve: --metadata-version: Unknown metadata.version '3.0'" in errors) == (2, True)


@pytest.mark.parametrize(("text", "level"), [("4.3-IV0", 30), ("30", 30), ("3.3-IV3", 7), ("4.1", 27)])
def test_takes_a_metadata_version_by_name_release_or_level(serve: Callable[..., Served], text: str, level: int) -> None:
    served = serve("--metadata-version", text)
    response = ask(served, ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4)
    assert {f.name: f.max_version_level for f in response.finalized_features}["metadata.version"] == level


def test_server_properties_are_options_or_static_configs(serve: Callable[..., Served]) -> None:
    given = {"num.partitions": "7", "log.retention.hours": "2", "unstable.feature.versions.enable": "true"}
    properties = [text for name, value in given.items() for text in ("--server-property", f"{name}={value}")]
    served = serve("--release", "4.3", "--metadata-version", "31", *properties)
    resource = DescribeConfigsResource(resource_type=4, resource_name="3000", configuration_keys=list(given))
    (result,) = ask(served, DescribeConfigsRequest(resources=[resource]), 4).results
    assert {config.name: config.value for config in result.configs} == given


def test_serves_proposals(serve: Callable[..., Served]) -> None:
    kip_9999 = Path(__file__).parents[2] / "examples" / "kip-9999"
    served = serve("--profile", "kip-858", "--profile", "kip-1066", "--schemas", str(kip_9999))
    versions = {api.api_key: api.max_version for api in ask(served, ApiVersionsRequest(), 0).api_keys}
    assert (versions[63], versions[64], versions[9000]) == (1, 1, 0)


def test_advertises_the_configured_endpoint(serve: Callable[..., Served]) -> None:
    served = serve("--advertised-host", "controller.example", "--advertised-port", "19093", "--host", "127.0.0.1")
    assert (served.host, served.port) == ("controller.example", 19093)


def test_logs_json_lines_with_the_reason_of_a_refusal(serve: Callable[..., Served]) -> None:
    served = serve("--log-json")
    with socket.create_connection((served.host, served.port), timeout=DEADLINE_S) as client_socket:
        client_socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client_socket.recv(100) == b""
    code, errors = served.end()
    assert code == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    (warning,) = [line for line in lines if line["level"] == "warning"]
    assert "a frame of 1195725856 bytes; the limit is 104857600" in warning["message"]
    assert warning["logger"] == "mockraft.listener"


def test_simulated_brokers_report_their_client_addresses(serve: Callable[..., Served]) -> None:
    served = serve("--brokers", "2", "--log-json")
    assert served.process.stdout is not None
    result = re.search(r"bootstrap_servers=127\.0\.0\.1:(\d+),127\.0\.0\.1:(\d+)$", served.process.stdout.readline())
    assert result is not None
    code, errors = served.end()
    assert code == 0
    messages = [json.loads(line)["message"] for line in errors.splitlines()]
    assert [message for message in messages if "serves clients" in message] == [
        f"broker {n} serves clients at 127.0.0.1:{port}" for n, port in enumerate(result.groups(), 1)
    ]


def test_a_port_of_a_broker_that_is_taken_is_named(serve: Callable[..., Served]) -> None:
    port = serve().port
    done = completed("serve", "--port", "0", "--brokers", "1", "--brokers-port", port)
    assert done.returncode == 3
    assert f":{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_teaches() -> None:
    text = invoke("serve", "--help").stdout
    for word in ("mockraft ready bootstrap=", "--data-dir", "--metadata-version", "Exit codes", "kafka-storage format"):
        assert word in text
    for choices in ("PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL", "none|requested|required", "debug|info|warning|error"):
        assert f" {choices}\n" in text
    assert "--release, --as-version TEXT" in text
    assert max(map(len, text.splitlines())) <= 120


def test_listeners_and_admin_api_share_the_limit_of_open_files() -> None:
    assert command._sockets(128, 0) == (48, 16)
    assert command._sockets(1_048_576, 1_000) == (1_045_000, 512)
    with pytest.raises(OptionError, match=r"ulimit -n\) is 1024; 3128 are needed at least"):
        command._sockets(1_024, 1_000)


def test_ten_thousand_idle_connections_disturb_no_client(serve: Callable[..., Served]) -> None:
    count = 10_000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    served = serve()
    idle = []
    try:
        for _ in range(count):
            idle.append(socket.create_connection((served.host, served.port), timeout=DEADLINE_S))
        for half_open in idle[::2]:
            half_open.sendall(b"\0\0")
        assert ask(served, ApiVersionsRequest(), 0).error_code == 0
        with open(f"/proc/{served.process.pid}/statm") as statm:
            resident_bytes = int(statm.read().split()[1]) * resource.getpagesize()
        assert resident_bytes < 300 << 20
    finally:
        for idle_socket in idle:
            idle_socket.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ask(served, ApiVersionsRequest(), 0).error_code == 0
    assert served.end()[0] == 0


def test_describe_cluster_returns_the_advertised_endpoint(serve: Callable[..., Served]) -> None:
    served = serve()
    response = ask(served, DescribeClusterRequest(endpoint_type=2), 2)
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(3000, "127.0.0.1", served.port)]


def test_help_shows_each_option_in_one_group() -> None:
    assert {option.group for option in OPTIONS.values()} == set(HEADINGS)
    assert all(option.help for option in OPTIONS.values())


def test_the_options_page_is_printed_from_the_table() -> None:
    printed = "python -m tools.pages serve-options"
    assert (Path(__file__).parents[2] / "docs" / "reference" / "serve-options.md").read_text() == as_markdown(), printed


def test_options_by_name_become_arguments() -> None:
    options = {"port": 0, "authorizer": True, "log_json": False, "data_dir": None, "profile": ["kip-18", "kip-858"]}
    assert to_arguments(options) == ["--port", "0", "--authorizer", "--profile", "kip-18", "--profile", "kip-858"]
    with pytest.raises(TypeError, match="did you mean session_timeout_ms"):
        to_arguments({"sesion_timeout_ms": 3})


@soak
def test_registrations_of_300_brokers_leave_a_quorum_its_leader() -> None:
    options = ("--controllers", "3", "--brokers", "300", "--brokers-port", "0", "--admin-port", "0")
    with started("serve", "--port", "0", *options, ready=r"mockraft ready .* admin=(\S+) .*\n") as (_, ready):

        def health() -> Any:
            with urllib.request.urlopen(f"{ready[1]}/v1/health", timeout=DEADLINE_S) as answer:
                return json.load(answer)

        first = health()["epoch"]
        wait_until(lambda: health()["brokers"] == {"total": 300, "fenced": 0}, 120, "300 brokers")
        assert health()["epoch"] == first
