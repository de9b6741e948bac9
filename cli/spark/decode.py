"""`mockraft spark decode`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.spark.options import SparkOptions, need_spark, spark_session, sparks_path, step
from mockraft.cli.terminal import Terminal
from mockraft.kafka_api.options import OptionError, blaming, option, required
from mockraft.wire.errors import WireError
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mockraft.spark_replay.spark.coverage import Coverage

DECODE = """Decode captures to tables: frames, messages, exchanges, records, forwarded messages, events.

Each table is a folder of Parquet files in --out, for Spark, pandas, DuckDB, Polars and mockraft spark report.
docs/reference/captured-tables.md describes the columns. Splits of a file are read in parallel; connections are
followed across splits and files.

  mockraft spark decode --captures 'ring/*.pcapng' --ports 9093 --out tables
  mockraft spark decode --captures run.pcap.gz --apis BrokerHeartbeat,63 --tables frames,messages --out tables
  mockraft spark decode --captures run.pcap --typed Fetch,BrokerHeartbeat --out tables
  mockraft spark decode --captures s3://captures/ring --master spark://host:7077 --out s3a://tables/run

""" + exit_codes(ExitCode.MISSING, ExitCode.INTERRUPTED, done="written", failed="the Spark job failed")


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(SparkOptions):
    """Options of `mockraft spark decode`."""

    apis: str | None = option(None, metavar="API[,API]", help="Only these APIs, by name or key.")
    clients: str | None = option(None, metavar="HOST[,HOST]", help="Only traffic of these client addresses.")
    time_from: str | None = option(None, metavar="TIME", help="Start (inclusive): 2026-11-20T10:00:00Z, or ns.")
    time_to: str | None = option(None, metavar="TIME", help="End (exclusive).")
    as_json: bool = option(False, "--json", help="The summary as JSON.")
    partitions: int | None = option(
        None, lowest=1, help="Shuffle partitions. Default: two per core; on a cluster spark.sql.shuffle.partitions."
    )

    out: str = required(metavar="DIR", help="The folder for the tables, a path or URL of Spark (s3a://…).")
    tables: str | None = option(
        None, metavar="TABLE[,TABLE]", help="Only these tables. Default: all but records, forwarded."
    )
    body: str = option("json", metavar="json|none", help="Message bodies as JSON text, or without bodies (faster).")
    typed: str | None = option(
        None, metavar="API[,API]", help="In place of messages a table for each API, with a column for each field."
    )
    topics: str | None = option(
        None,
        metavar="TOPIC[,TOPIC]",
        help="In records, only these topics, by name or id: Fetch and Produce of version 13 and later have only ids.",
    )
    record_bytes_max: int = option(
        64 << 20, lowest=1, metavar="BYTES", help="In records, a batch that decompresses to more is an error row."
    )
    overwrite: bool = option(False, help="Replace existing tables.")
    show_secrets: bool = option(False, help="Keep passwords, keys, tokens and sensitive configs.")

    def selecting(self) -> list[str]:
        """Return the given options that select frames."""
        given = {
            "--apis": self.apis,
            "--clients": self.clients,
            "--time-from": self.time_from,
            "--time-to": self.time_to,
        }
        return [name for name, value in given.items() if value is not None]

    def source(self, **more: str | None) -> dict[str, object]:
        """Return the options for `tables.frames`, with those that select frames."""
        times = {"timeFrom": self.time_from, "timeTo": self.time_to}
        return super().source(apiKeys=self.apis, clients=self.clients, **times, **more)


def decode(options: DecodeOptions) -> None:
    """Write the tables and print a summary."""
    need_spark()
    from mockraft.spark_replay.spark import decode_job
    from mockraft.spark_replay.spark.coverage import coverage

    out = sparks_path(options.out)
    only = decode_job.TABLES if options.tables is None else _chosen(options.tables, decode_job.CHOICES, "--tables")
    typed = _apis(options.typed)
    if typed and options.tables is None:
        only = tuple(name for name in only if name != "messages")
    names = [*(name for name in decode_job.CHOICES if name in only), *map(decode_job.typed_name, typed)]
    _chosen(options.body, ("json", "none"), "--body")
    source, files = options.source(), options.files()
    chosen = decode_job.TableOptions(
        only=only,
        typed=typed,
        with_bodies=options.body == "json",
        show_secrets=options.show_secrets,
        topics=[each.strip() for each in (options.topics or "").split(",") if each.strip()],
        record_bytes_max=options.record_bytes_max,
        partitions=options.partitions,
        overwrite=options.overwrite,
        source=source,
    )
    with spark_session(options.master, options.conf) as spark:
        try:
            counts = decode_job.write_tables(
                spark,
                files,
                out,
                chosen,
                on_table=lambda name: step(f"writing {name} ({names.index(name) + 1} of {len(names)})"),
            )
        except decode_job.TablesExistError as there:
            raise OptionError(f"{there}: --overwrite replaces them", "--out") from None
        found = []
        if "messages" in only:
            step("counting messages")
            found = coverage(spark.read.parquet(f"{out}/messages"))
    if options.topics and counts.get("records") == 0:
        note = "no record of --topics; Fetch and Produce have topic ids, not names, from version 13"
        print(f"mockraft spark decode: {note}", file=sys.stderr)
    elif not any(count for name, count in counts.items() if name not in ("conn_events", "file_events")):
        print(f"mockraft spark decode: {options.no_kafka(files)}", file=sys.stderr)
        if selecting := options.selecting():
            print(f"  {', '.join(selecting)} may leave all frames out", file=sys.stderr)
    if options.as_json:
        kinds = [row._asdict() for row in found]
        print(json.dumps({"captures": files, "out": out, "rows": counts, "coverage": kinds}))
        return
    console = Terminal()
    _print_coverage(console, found)
    console.print(", ".join(f"{count:,} {name}" for name, count in counts.items()) + f" in {out}", soft_wrap=True)


def _apis(text: str | None) -> tuple[str, ...]:
    """Return the APIs of --typed. Raises OptionError for an unknown one."""
    from mockraft.spark_replay.decoding import typed_schema

    found = tuple(dict.fromkeys(each.strip() for each in text.split(","))) if text else ()
    for api in found:
        with blaming("--typed", WireError):
            typed_schema(api)
    return found


def _chosen(text: str | None, allowed: tuple[str, ...], option: str) -> tuple[str, ...]:
    chosen = allowed if text is None else tuple(each.strip() for each in text.split(","))
    if wrong := [each for each in chosen if each not in allowed]:
        raise OptionError(f"{wrong[0]!r} is not {', '.join(allowed)}", option)
    return chosen


def _print_coverage(console: Terminal, rows: list[Coverage]) -> None:
    if not rows:
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("API", "version", "", "status"):
        table.add_column(heading, no_wrap=True)
    for heading in ("messages", "different"):
        table.add_column(heading, justify="right", no_wrap=True)
    if any(row.example for row in rows):
        table.add_column("first difference", overflow="fold")
    for row in rows:
        cells = (
            row.api_name or "?",
            "" if row.api_version is None else f"v{row.api_version}",
            "response" if row.is_response else "request",
            Text(row.decode_status, style="" if row.decode_status == "ok" else "red"),
            f"{row.frames:,}",
            Text(f"{row.not_roundtrip:,}" if row.not_roundtrip else "", style="red"),
            row.example,
        )
        table.add_row(*cells[: len(table.columns)])
    console.print(table)


COMMAND = Command("decode", decode, DECODE)
