"""`mockraft spark report`: a capture, and the results of its replay, as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end, end_without, write_json
from mockraft.cli.spark.options import KEY_LOG_HELP, no_kafka
from mockraft.cli.terminal import Terminal
from mockraft.kafka_api.options import blaming, option, required
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_paths
from mockraft.spark_replay.storage import Location, LocationError
from mockraft.spark_replay.storage.listing import is_folder
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mockraft.spark_replay.report.sources import OnRows

NAME = "spark report"
GO_ON = "; --on-error skip continues behind the damage"
ABOUT = """Write a report of captured traffic as one self-contained HTML file.

It shows APIs and versions, decoding and round trips of every frame, latencies, requests per second with gaps, failovers
and fenced brokers, intervals between heartbeats, errors, clients, and what could not be read. With --replay also the
differences between live and captured responses by API and path, with the first examples decoded side by side and
commands that reproduce them without Spark. It needs pip install 'mockraft[report]', and neither PySpark nor Java; only
the tables of --tables and --replay are made by Spark.

  mockraft spark report --captures run.pcap --ports 9093 --html run.html
  mockraft spark report --captures 'ring/*.pcapng.zst' --html week.html --json -
  mockraft spark report --tables tables/ --html run.html            tables of mockraft spark decode --out tables/
  mockraft spark report --tables tables/ --replay replayed/ --html diff.html --strict

Tables are folders of Parquet files: messages, and optionally conn_events, file_events and frames (for commands that
decode requests); of a replay replay_results, diffs and rules.json. They are read batch by batch, in bounded memory.
A report without any frame, as with a wrong port, is written too, and the exit code is 2.

""" + exit_codes(
    ExitCode.MISSING,
    ExitCode.INTERRUPTED,
    done="the report is written",
    failed="with --strict: a frame did not decode or round-trip, or a response differs",
)


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `mockraft spark report`."""

    html: str = required(metavar="FILE", help="The file to write.")
    tables: str | None = option(None, metavar="DIR", help="Tables of mockraft spark decode.")
    captures: list[str] | None = option(
        None, metavar="PATH", help="A capture, a quoted glob, or a folder, instead of tables; repeatable."
    )
    ports: list[str] | None = option(
        None, "--ports", "--port", metavar="PORT[,PORT]", help="The servers' ports; repeatable. Default: all."
    )
    key_log: str | None = option(None, metavar="FILE", help=KEY_LOG_HELP)
    replay: str | None = option(None, metavar="DIR", help="Tables of mockraft spark replay.")
    title: str | None = option(None, help="The page's heading.")
    on_error: Literal["fail", "skip"] = option(
        "fail", help="For damaged captures: fail, or skip (count the damage and continue)."
    )
    json_file: Path | None = option(None, "--json", help="Write the numbers to this file too; - for stdout.")
    show_secrets: bool = option(False, help="Show passwords, keys, tokens and sensitive configs.")
    strict: bool = option(False, help="Exit with code 1 if a frame or response differs.")


def report(options: ReportOptions) -> None:
    """Write a report; see ABOUT."""
    if options.tables and options.captures:
        _misuse("use either --tables or --captures")
    if not (options.tables or options.captures or options.replay):
        _misuse("--tables, --captures or --replay is needed")
    try:
        from mockraft.spark_replay.report.page import NoTemplatesError, write_report
        from mockraft.spark_replay.report.sources import Captures, SourceError
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("mockraft"):
            raise
        end_without(NAME, error.name, "report")
    servers = _ports(options.ports or ())
    with blaming("--html", LocationError):
        Location.parse(options.html)
    for flag, folder in (("--tables", options.tables), ("--replay", options.replay)):
        with blaming(flag, LocationError):
            if folder is not None and not is_folder(Location.parse(folder)):
                _misuse(f"{flag} {folder} is not a folder")
    with blaming("--captures", NoCaptureError):
        files = capture_paths(options.captures or ())
    for flag, path in (("--html", options.html), ("--json", options.json_file)):
        if path is not None and os.path.abspath(path) in map(os.path.abspath, files):
            _misuse(f"{flag} {path} is one of --captures")
    try:
        with _progress() as on_rows:
            found = write_report(
                options.html,
                Captures(files, servers, options.on_error, options.key_log) if files else options.tables,
                replay=options.replay,
                title=options.title,
                show_secrets=options.show_secrets,
                on_rows=on_rows,
            )
    except SourceError as error:
        _misuse(f"{error}{GO_ON if files and options.on_error == 'fail' else ''}")
    except NoTemplatesError as error:
        end(NAME, error, ExitCode.MISSING)
    except KeyboardInterrupt:
        end(NAME, "interrupted", ExitCode.INTERRUPTED)
    except OSError as error:
        _misuse(f"cannot write {options.html}: {error.strerror or error}")
    write_json(NAME, options.json_file, found)
    if options.json_file != Path("-"):
        _show(found, options.html)
    if _is_empty(found):
        ports = ",".join(map(str, servers))
        _misuse(no_kafka(files or [str(options.tables)], ports, options.key_log, are_captures=bool(files)))
    if options.strict and not _is_clean(found):
        raise SystemExit(ExitCode.FAILED)


def _ports(given: Sequence[str]) -> list[int]:
    texts = [text.strip() for each in given for text in each.split(",")]
    if wrong := [text for text in texts if not (text.isdecimal() and 0 < int(text) < 1 << 16)]:
        _misuse(f"--ports: {wrong[0]!r} is not a port")
    return [int(text) for text in texts]


@contextmanager
def _progress() -> Iterator[OnRows]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
    )
    console = Terminal(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def on_rows(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        yield on_rows


def _is_empty(found: dict[str, Any]) -> bool:
    total = found.get("total")
    return total is not None and not total["frames"]


def _is_clean(found: dict[str, Any]) -> bool:
    total, replay = found.get("total"), found.get("replay")
    is_read = total is None or total["roundtrip"].get("same", 0) == total["frames"]
    return is_read and (replay is None or replay["same"] == replay["sent"])


def _show(found: dict[str, Any], html: str) -> None:
    console = Terminal()
    total, replay = found.get("total"), found.get("replay")
    if total is not None:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("API", header_style="dim", no_wrap=True)
        for name in ("requests", "responses", "not decoded", "different", "p50 ms", "p99 ms"):
            table.add_column(name, justify="right", header_style="dim")
        for row in found["apis"]:
            times = [f"{row['ms'][name]:.1f}" if row["ms"] else "" for name in ("p50", "p99")]
            bad = [Text(f"{row[name]:,}", style="red" if row[name] else "dim") for name in ("notDecoded", "different")]
            table.add_row(row["api"], f"{row['requests']:,}", f"{row['responses']:,}", *bad, *times)
        console.print(table)
        same = total["roundtrip"].get("same", 0)
        style = "green" if same == total["frames"] else "red"
        read = f"{same:,} of {total['frames']:,} frames on {total['connections']:,} connections"
        console.print(f"\n{read} round-trip", style=style)
    if replay is not None:
        style = "green" if replay["same"] == replay["sent"] else "red"
        places = f", {len(found['differences']):,} kinds of difference" if found["differences"] else ""
        allowed = " or as your rules permit" if found["rules"]["own"] else ""
        console.print(f"{replay['same']:,} of {replay['sent']:,} responses as captured{allowed}{places}", style=style)
    console.print(f"report: {html}", style="dim", soft_wrap=True)


def _misuse(what: str) -> NoReturn:
    end(NAME, what, ExitCode.USAGE)


COMMAND = Command("report", report, ABOUT)
