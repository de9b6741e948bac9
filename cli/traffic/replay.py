"""`mockraft replay`: send a capture's requests to a live controller and compare its responses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import api_filter, client_security, end, end_without, host_and_port, write_file, write_json
from mockraft.cli.spark.options import KEY_LOG_HELP, hints
from mockraft.cli.terminal import Terminal
from mockraft.kafka_api.options import OptionError, blaming, option, required
from mockraft.spark_replay.regression import replay as replaying
from mockraft.spark_replay.regression.junit import as_junit
from mockraft.spark_replay.regression.replay import LEFT_OUT
from mockraft.spark_replay.regression.replay import replay as replay_exchanges
from mockraft.spark_replay.regression.send_order import CAUSAL, PACED
from mockraft.spark_replay.regression.summary import report
from mockraft.spark_replay.regression.verdict import ReportRow, change_text, first_text
from mockraft.wire.client import DisconnectedError, UnsupportedVersionError
from mockraft.wire.errors import WireError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from mockraft.spark_replay.regression.captured import Captured
    from mockraft.spark_replay.regression.replay import ExchangeResult, Replayed

FINDINGS_SHOWN = 40
COLUMNS = {
    "sent": "sent",
    "equal": "equal",
    "rawEqual": "identical bytes",
    "failed": "no response",
    "medianMs": "median ms",
    "capturedMedianMs": "captured ms",
}
"""Counts of an API in a report, and their columns."""

ABOUT = """Send the requests of a capture to a controller again and compare its responses, field by field.

Each captured connection gets a live one. A request is sent after all responses that preceded it in the capture, so
concurrent requests are concurrent again. Ids and epochs assigned by a controller (cluster id, broker epochs, topic ids,
quorum epochs, producer ids) are paired when they appear in responses, and replaced in later requests; offsets follow
the live log. Times, texts and offsets in responses are not compared.

  mockraft replay --capture run.pcapng --bootstrap 127.0.0.1:9093
  mockraft replay --capture run.pcapng --bootstrap 127.0.0.1:9093 --speed 1        at the pace of the capture
  mockraft replay --capture run.pcapng --bootstrap 127.0.0.1:9093 --admin http://127.0.0.1:8080
  mockraft replay --capture old.pcap --port 19093 --bootstrap mine:9093 --ignore finalizedFeatures --json report.json

The controller must be new: brokers register and topics are created. Even at full speed, the absence of a broker takes
its time, so that its session expires as in the capture; --admin skips it with the virtual clock of mockraft serve.

Reading captures needs pip install 'mockraft[captures]'.

""" + exit_codes(ExitCode.NO_ANSWER, ExitCode.MISSING, done="all responses as captured", failed="differences")


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """Options of commands that read one capture."""

    capture: Path = required(help="A pcap or pcapng file, from mockraft capture or tcpdump.")
    port: list[int] | None = option(None, help="The captured controller's port; repeatable. Default: all servers.")
    key_log: Path | None = option(None, help=KEY_LOG_HELP)


@dataclass(frozen=True, kw_only=True)
class Options(CaptureOptions):
    """Options of `mockraft replay`."""

    bootstrap: str = required(metavar="HOST:PORT", help="The controller to send to.")
    admin: str | None = option(
        None,
        metavar="URL",
        help="Admin API of a controller with --virtual-clock, to skip the time that a broker is away.",
    )
    speed: str = option("max", help="max, or a multiple of the capture's pace: 1, 10.", metavar="max|N")
    filters: list[str] | None = option(
        None, "--filter", metavar="API[,API]", help="Send only these APIs, or with ! all others."
    )
    ignore: list[str] | None = option(
        None, metavar="FIELD", help="Do not compare this field (isFenced, or Fetch:nodeEndpoints[0].host); repeatable."
    )
    command_config: Path | None = option(
        None, help="Client properties for a controller with TLS or SASL, as Kafka's tools take them."
    )
    json_file: Path | None = option(None, "--json", help="Write the report to this file; - for stdout.")
    junit_file: Path | None = option(None, "--junit", help="Write it as JUnit XML, a test case for each API.")
    show_secrets: bool = option(False, help="Show passwords, keys, tokens and sensitive configs.")


def replay(options: Options) -> None:
    """Replay; see ABOUT."""
    host, port = host_and_port(options.bootstrap, "--bootstrap")
    kept = api_filter(options.filters)
    exchanges = exchanges_of("replay", options.capture, options.port, options.key_log)
    pace = _speed(options.speed)
    if options.admin is not None and pace is not None:
        raise OptionError("a virtual clock has no pace: leave --speed at max", "--admin")
    how = replaying.Options(
        order=CAUSAL if pace is None else PACED,
        speed=pace or 1.0,
        kept=kept,
        ignored=options.ignore or (),
        security=client_security(options.command_config),
        show_secrets=options.show_secrets,
    )
    try:
        found = report(asyncio.run(_with_progress(exchanges, host, port, how, options.admin)))
    except (DisconnectedError, UnsupportedVersionError, WireError) as error:
        end("replay", error, ExitCode.NO_ANSWER)
    tree = found.to_json(options.bootstrap, options.capture.name)
    write_json("replay", options.json_file, tree)
    if options.junit_file is not None:
        write_file("replay", options.junit_file, as_junit(tree))
    if options.json_file != Path("-"):
        _show(tree)
    if found.same < found.sent:
        raise SystemExit(ExitCode.FAILED)


def exchanges_of(command: str, capture: Path, ports: list[int] | None, key_log: Path | None) -> list[Captured]:
    """Return the exchanges of a capture file. End the command if there are none or it cannot be read."""
    try:
        from mockraft.spark_replay.exchanges import read_exchanges
    except ModuleNotFoundError as error:
        end_without(command, error.name, "captures")
    from mockraft.spark_replay.formats import CaptureError
    from mockraft.spark_replay.key_logs import KeyLogError

    with blaming("--capture", CaptureError), blaming("--key-log", KeyLogError):
        exchanges = read_exchanges(capture, ports or (), key_log)
    if not exchanges:
        where = f" to port {', '.join(map(str, ports))}" if ports else ""
        lines = [f"{capture} has no Kafka exchanges{where}", *hints([str(capture)], str(key_log) if key_log else None)]
        raise OptionError("\n  ".join(lines), "--capture")
    return exchanges


def _speed(text: str) -> float | None:
    try:
        speed = None if text == "max" else float(text)
        if speed is not None and not 0 < speed < 1e9:
            raise ValueError
    except ValueError:
        raise OptionError(f"{text!r} is neither max nor a number over 0", "--speed") from None
    return speed


async def _with_progress(
    exchanges: list[Captured], host: str, port: int, how: replaying.Options, admin: str | None
) -> Replayed:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as progress:
        task = progress.add_task(f"to {host}:{port}", total=len(exchanges))
        different = 0

        def on_outcome(outcome: ExchangeResult) -> None:
            nonlocal different
            different += not outcome.is_same and outcome.status != LEFT_OUT
            progress.update(task, advance=1, description=f"to {host}:{port}, {different} different")

        return await replay_exchanges(exchanges, host, port, how, on_outcome=on_outcome, admin=admin)


def _show(found: ReportRow) -> None:
    console = Terminal()
    show_rows(console, "Changed", found["differences"])
    console.print()
    show_counts(console, found)
    style = "green" if found["same"] == found["sent"] else "red"
    console.print(f"\n{found['same']:,} of {found['sent']:,} responses as captured", style=style)


def show_rows(console: Terminal, title: str, rows: Sequence[ReportRow]) -> None:
    """Print the first rows of what differs: both values, and why that is known or the first example."""
    show_line(console, f"{title} ({len(rows)})", "bold")
    for each in rows[:FINDINGS_SHOWN]:
        show_line(console, f"  {each['api']} {each['path']}: {change_text(each)}  {each['count']:,}x")
        show_line(console, f"    {each['why'] if 'why' in each else f'first {first_text(each)}'}", "dim")
    if len(rows) > FINDINGS_SHOWN:
        show_line(console, f"  … and {len(rows) - FINDINGS_SHOWN:,} more; all are in --json")


def show_line(console: Terminal, line: str, style: str = "") -> None:
    """Print a line that is not wrapped."""
    console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)


def show_counts(console: Terminal, found: ReportRow) -> None:
    """Print a table of APIs with the counts that the report has, and what was left out."""
    names = [name for name in COLUMNS if any(name in each for each in found["apis"])]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("API", header_style="dim", no_wrap=True)
    for name in names:
        table.add_column(COLUMNS[name], justify="right", header_style="dim")
    for each in found["apis"]:
        table.add_row(each["api"], *(f"{each[name]:{'.1f' if name.endswith('Ms') else ','}}" for name in names))
    console.print(table)
    for each in found["leftOut"]:
        console.print(f"left out: {each['count']:,} {each['api']}, {each['why']}", style="dim")


COMMANDS = {"replay": Command("replay", replay, ABOUT)}
