"""Behaviour shared by all commands that use the admin API."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

from ...rows import each_row
from .conftest import TOKEN, Cli

GROUPS = ("stubs", "faults", "requests", "brokers", "topics", "records", "state", "clock", "scenarios")


@each_row("group", GROUPS)
def test_help_has_examples_and_the_admin_url(cli: Cli, group: str) -> None:
    text = cli(group, "--help")
    assert cli.exit_code == 0
    assert f"mockraft {group}" in text.partition("Options:")[0].partition("\n")[2]
    assert "mockraft serve --admin-port 8080" in text
    assert "Exit codes" in text


def test_an_unreachable_admin_api_gets_a_start_command(cli: Cli) -> None:
    assert cli("brokers", MOCKRAFT_ADMIN="http://127.0.0.1:1") == ""
    assert cli.exit_code == 6
    first, second, third = cli.errors.splitlines()
    assert first.startswith("mockraft brokers: nothing answers at http://127.0.0.1:1 (")
    assert "mockraft serve --admin-port 8080" in second
    assert "--admin URL, or MOCKRAFT_ADMIN=URL" in third


def test_an_answer_that_is_cut_is_no_usable_one(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[")

        thread = threading.Thread(target=cut)
        thread.start()
        cli("brokers", "--admin", f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert cli.exit_code == 6
    assert "ended within its answer" in cli.errors


@each_row("url", ["nonsense", "ftp://127.0.0.1"])
def test_a_url_that_is_none_is_named(cli: Cli, url: str) -> None:
    cli("clock", "--admin", url)
    assert cli.exit_code == 6
    assert url in cli.errors


def test_another_server_is_not_taken_for_mockraft(cli: Cli, url: str) -> None:
    cli("clock", "--admin", f"{url}/elsewhere")
    assert cli.exit_code != 0


def test_a_missing_token_names_its_option(cli: Cli, tmp_path: Path) -> None:
    cli("brokers", MOCKRAFT_ADMIN_TOKEN="")
    assert cli.exit_code == 1
    assert "--token-file FILE" in cli.errors
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    cli("brokers", "--token-file", str(file), MOCKRAFT_ADMIN_TOKEN="")
    assert cli.exit_code == 0
    cli("brokers", "--token-file", str(tmp_path / "none"))
    assert cli.exit_code == 2
    assert "cannot read" in cli.errors


def test_a_reader_that_ends_early_gets_no_error(url: str) -> None:
    command = [sys.executable, "-m", "mockraft", "brokers", "--json", "--admin", url]
    environment = {**os.environ, "MOCKRAFT_ADMIN_TOKEN": TOKEN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


def test_options_before_a_subcommand_apply(cli: Cli, url: str) -> None:
    assert "Started" in cli("scenarios", "--admin", url, "reset", MOCKRAFT_ADMIN="http://127.0.0.1:1")
    assert cli.exit_code == 0


def test_a_refusal_names_the_field(cli: Cli) -> None:
    cli("stubs", "add", "BrokerHeartbeat", "--where", "wantFense=true")
    assert cli.exit_code == 1
    assert cli.errors.startswith("mockraft stubs add: ")
    assert "wantFence" in cli.errors
    cli("faults", "add", "latency", "latencyMs=-1")
    assert "latencyMs" in cli.errors


@each_row(
    ("said", "why"),
    [
        (("stubs", "add", "Fetch", "--where", "nonsense"), "is not NAME=VALUE"),
        (("stubs", "add", "Fetch", "--times", 1, "--on-call", 2), "exclude each other"),
        (("stubs", "remove"), "an ID or --all"),
        (("faults", "remove", "x", "--all"), "an ID or --all"),
        (("clock", "advance", "soon"), "is no time"),
        (("requests", "save", "run.txt"), ".pcapng or .jsonl"),
        (("requests", "--follow", "--search", "x"), "looks back"),
        (("requests", "--closed", "--api", "Fetch"), "with --closed only"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_reason(cli: Cli, said: tuple[str, ...], why: str) -> None:
    cli(*said)
    assert cli.exit_code == 2
    assert why in " ".join(cli.errors.replace("│", " ").split())
