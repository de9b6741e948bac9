"""`mockraft run` and `mockraft broker` as processes, and the screen at several sizes."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.cli.run.screen import Moment, Screen, clock_text, state_of
from mockraft.kafka.child_process import free_port
from mockraft.server.views import BrokerView, ListenerView, LogDirView
from rich.console import Console

from ..rows import each_row
from .cli import in_a_terminal, invoke, one_line

DEADLINE_S = 60
Launch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Start `mockraft …`; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, program: tuple[str, ...] = ("-m", "mockraft")) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Read lines until one matches; fails with what came when none does."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"no line with {pattern!r} in:\n{''.join(seen)}")


def test_without_a_terminal_it_prints_lines_and_stops_by_itself(launch: Launch) -> None:
    process = launch("run", "--port", "0", "--for", "3")
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out
    assert re.search(
        r"mockraft running bootstrap=127\.0\.0\.1:\d+ cluster_id=\S+ metadata\.version=4\.4-IV2 \(33\)", out
    )
    for broker_id in (1, 2, 3):
        assert re.search(rf"broker {broker_id}: running, unfenced, epoch \d+", out)
    assert re.search(r"stopped after \d+\.\d s; 3 of 3 brokers left by controlled shutdown", out)
    assert "\x1b" not in out, "no colours in a pipe"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(launch: Launch, number: signal.Signals) -> None:
    process = launch("run", "--port", "0", "--brokers", "1")
    read_until(process, "broker 1: running")
    process.send_signal(number)
    out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, out
    assert "1 of 1 brokers left by controlled shutdown" in out
    assert "Traceback" not in out


def test_takes_another_port_when_the_usual_one_is_taken(launch: Launch) -> None:
    # Not Kafka's usual one itself: servers of the documentation's pages may be about to listen on it.
    usual = "from mockraft.cli.run import command; command.DEFAULT_PORT = {}; from mockraft.cli import main; main()"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = launch("run", "--brokers", "0", "--for", "0", program=("-c", usual.format(port)))
        assert read_until(process, r"bootstrap=127\.0\.0\.1:(\d+)")[1] != str(port)
    free = free_port()
    process = launch("run", "--brokers", "0", "--for", "0", program=("-c", usual.format(free)))
    assert read_until(process, r"bootstrap=127\.0\.0\.1:(\d+)")[1] == str(free)


def test_port_in_use_is_reported(launch: Launch) -> None:
    first = launch("run", "--brokers", "0", "--port", "0")
    port = read_until(first, r"bootstrap=127\.0\.0\.1:(\d+)")[1]
    second = launch("run", "--port", port)
    out, _ = second.communicate(timeout=DEADLINE_S)
    assert second.returncode == 3
    assert f"cannot listen on 127.0.0.1:{port}" in out


def test_one_more_broker_joins_and_leaves(launch: Launch, tmp_path: Path) -> None:
    controller = launch("run", "--brokers", "1", "--port", "0")
    bootstrap = read_until(controller, r"bootstrap=(\S+)")[1]
    where = ("--bootstrap-controller", bootstrap, "--log-dir", str(tmp_path), "--format")
    broker = launch("broker", "--id", "4", "--rack", "r4", *where)
    read_until(controller, "broker 4: running, unfenced")
    broker.send_signal(signal.SIGTERM)
    out, _ = broker.communicate(timeout=DEADLINE_S)
    assert broker.returncode == 0, out
    assert "broker 4 stopped: the controller granted controlled shutdown" in out
    assert {"meta.properties", ".kafka_cleanshutdown"} <= {path.name for path in tmp_path.iterdir()}


def test_second_signal_stops_a_broker_without_a_controller(launch: Launch) -> None:
    controller = launch("run", "--brokers", "0", "--port", "0")
    bootstrap = read_until(controller, r"bootstrap=(\S+)")[1]
    broker = launch("broker", "--id", "1", "--bootstrap-controller", bootstrap)
    read_until(broker, "RECOVERY -> RUNNING")
    controller.kill()
    controller.wait()
    broker.send_signal(signal.SIGINT)
    read_until(broker, "asks the controller for leave")
    broker.send_signal(signal.SIGINT)
    out, _ = broker.communicate(timeout=DEADLINE_S)
    assert broker.returncode == 0, out
    assert "broker 1 stopped: stop requested" in out
    assert "Traceback" not in out


def test_broker_without_a_controller_reports_the_problem(launch: Launch) -> None:
    broker = launch("broker", "--id", "1", "--bootstrap-controller", "127.0.0.1:1")
    out, _ = broker.communicate(timeout=DEADLINE_S)
    assert broker.returncode == 6
    assert "cannot connect to 127.0.0.1:1" in out
    assert "Traceback" not in out


@each_row("text", ["localhost", ":9093", "h:0", "h:70000", "h:x"])
def test_a_bad_address_is_a_usage_error(text: str) -> None:
    ended = invoke("broker", "--id", "1", "--bootstrap-controller", text)
    assert ended.exit_code == 2
    assert "is not host:port" in one_line(ended.stderr)


def test_in_a_terminal_it_draws_the_screen_and_gives_it_back() -> None:
    with in_a_terminal("run", "--port", "0", "--for", "4") as (process, output):
        text = b"".join(output).decode()
        assert process.wait(DEADLINE_S) == 0, text
    assert "\x1b[?1049h" in text
    assert text.rindex("\x1b[?1049l") > text.rindex("mockraft broker --id 4"), "the terminal gets its screen back"
    assert "BrokerHeartbeat v2" in text
    assert "3 of 3 brokers left by controlled shutdown" in text[text.rindex("\x1b[?1049l") :]


def broker(broker_id: int, fenced: bool = False, leaves: bool = False, contact_ms: int | None = 600) -> BrokerView:
    listeners = (ListenerView("PLAINTEXT", "127.0.0.1", 40000 + broker_id, "PLAINTEXT"),)
    log_dirs = (LogDirView("A" * 22, "online"), LogDirView("B" * 22, "offline"))
    incarnation = "yeHcJuV4f39fBR__6SsXMA"
    return BrokerView(
        broker_id, 13, incarnation, fenced, leaves, None, listeners, {}, log_dirs, contact_ms, True, 29, 0
    )


def moment(brokers: int = 3, lines: int = 50) -> Moment:
    rows = [broker(number) for number in range(1, brokers + 1)]
    journal = [f"+{number}.000 s  broker 1  BrokerHeartbeat v2  → ok {'x' * 200}" for number in range(lines)]
    return Moment("yeHcJuV4f39fBR__6SsXMA", "127.0.0.1:9093", "4.3-IV0 (30)", 1, 29, 0, 62_000, 1_000, rows, journal)


def drawn(shown: Moment, width: int, height: int) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), legacy_windows=False)
    with console.capture() as capture:
        console.print(Screen(shown), end="")
    return capture.get().splitlines()


@each_row(("width", "height"), [(60, 24), (80, 24), (100, 30), (120, 40), (200, 60)])
def test_the_screen_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(moment(), width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= height
    text = "\n".join(lines)
    for needed in ("mockraft", "127.0.0.1:9093", "running", "BrokerHeartbeat", "--id 4"):
        assert needed in text, text


def test_the_columns_stay_in_line() -> None:
    lines = drawn(moment(brokers=12), 110, 40)
    rows = [line for line in lines if " running " in line]
    assert len(rows) == 12
    assert len({line.index("running") for line in rows}) == 1
    assert len({line.index("yeHc") for line in rows}) == 1


def test_the_newest_lines_are_shown_and_the_room_is_filled() -> None:
    lines = drawn(moment(lines=100), 110, 40)
    shown = [line for line in lines if "BrokerHeartbeat v2" in line]
    assert len(shown) > 10
    assert "+99.000 s" in shown[-1]
    assert len(drawn(moment(lines=0), 110, 40)) == len(lines), "nothing jumps when lines come in"


def test_an_empty_cluster_has_a_screen_too() -> None:
    assert any("nobody yet" in line for line in drawn(moment(brokers=0, lines=0), 80, 24))


def test_spans_of_time_are_short() -> None:
    assert [clock_text(ms) for ms in (0, 62_000, 3_723_000)] == ["0:00", "1:02", "1:02:03"]


def test_a_broker_has_one_state() -> None:
    shown = [broker(1), broker(1, fenced=True), broker(1, fenced=True, contact_ms=None), broker(1, leaves=True)]
    assert [*map(state_of, shown)] == ["running", "starting", "gone", "leaving"]
    assert state_of(broker(1, fenced=True, leaves=True)) == "left"
