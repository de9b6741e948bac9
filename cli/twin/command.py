"""`mockraft twin`: run a copy of a real controller, and compare two points of its metadata log."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mockraft.cli.admin.remote import compact
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.serve import command
from mockraft.cli.serve.options import OPTIONS, defaults
from mockraft.cli.twin import plan
from mockraft.cli.twin.options import AsJson, Source, history_of, option_of_serve, report
from mockraft.kafka_api.clock import VIRTUAL_START_MS
from mockraft.kafka_api.options import Option, OptionError, blaming, option
from mockraft.server.views import LogRecord
from mockraft.twin import changes, each_change, twin_state, write_twin
from mockraft.twin.history import time_text
from mockraft.wire.errors import WireError

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image
    from mockraft.wire.json_form import Tree

ABOUT = """Run a copy of a real controller: its brokers, topics, configs and features, to test and to change.

--from is one of
  a controller's data directory, or its __cluster_metadata-0; the controller may be running
  a snapshot of the metadata log (*.checkpoint), or its first segment (*.log)
  a capture in which a broker fetched the metadata log from its beginning (pcap, pcapng, gzip)

It is only read. Kafka 3.7 to 4.4; a log that is cut or damaged is taken up to there, with a line that says so. The twin
has the cluster id, the release of the controllers that were registered, and is the only voter. Its log is in memory,
unless --data-dir is given, and begins with a snapshot of the state.

  mockraft twin --from /var/lib/kafka/metadata                           the newest state
  mockraft twin --from copy --at 2026-11-26T02:00:00Z --admin-port 8080  an hour ago, with the live page
  mockraft twin --from copy --brokers live                               with simulated brokers
  mockraft twin diff --from copy --at 1200 --to 1300                     what these records changed
  mockraft twin records --from copy --at 1200 --to 1300                  these records, as JSON
  mockraft twin plan --from copy plan.yaml                               what steps would do

Prints the line of mockraft serve once it accepts connections. Ctrl-C ends it.

""" + exit_codes(
    ExitCode.CANNOT_LISTEN,
    ExitCode.UNUSABLE_DIRECTORY,
    ExitCode.CANNOT_CONTINUE,
    ExitCode.MISSING,
    done="it was stopped",
)
DIFF_ABOUT = """List what changed between two points of a metadata log: brokers, features, topics, partitions, configs.

A point is an offset (the state after that record; -1 is the last one) or a time (2026-11-26T02:00:00Z; UTC unless it
has a zone). --each lists the changes one after the other, each with the time and the offsets of the batch (85–94) or
transaction that made it, which brokers apply at once: --at 94 is the state after it, --at 84 that before.

  mockraft twin diff --from controller-data --at 2026-11-26T00:00:00Z --each
  mockraft twin diff --from controller-data --at 1200 --to 1300
  mockraft twin diff --from night.pcap --at 2026-11-26T02:00:00Z --json

""" + exit_codes(ExitCode.MISSING)

RECORDS_ABOUT = """List the metadata records of a source, as Kafka's JSON, without secrets.

Those of a snapshot all have its last offset. Control records are left out.

  mockraft twin records --from controller-data --at 85 --to 94
  mockraft twin records --from night.pcap --at 2026-11-26T02:00:00Z --json

""" + exit_codes(ExitCode.MISSING)

_GC_THRESHOLDS = (50_000, 5, 100)
"""Full collections are rare: they scan all partitions and free nothing."""

Point = Annotated[
    str | None, Option(flags=("--at",), metavar="OFFSET|TIME", help="Where it begins. Default: the start.")
]
ToPoint = Annotated[str | None, Option(flags=("--to",), metavar="OFFSET|TIME", help="Where it ends. Default: the end.")]
Each = Annotated[bool, Option(flags=("--each",), help="Every change between the points, with offset and time.")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft twin`: the source, and those of `mockraft serve` that a twin needs."""

    source: Path | None = option(None, "--from", help="A data directory, snapshot, segment or capture; see above.")
    at: str | None = option(None, metavar="OFFSET|TIME", help="The state after that record, or at that time.")
    host: str = option_of_serve("host")
    port: int = option_of_serve("port")
    node_id: int | None = option(
        None, lowest=0, help="The twin's node id. Default: 3000, or the next one that is free."
    )
    cluster_id: str | None = option(None, help="The cluster's id. Default: the source's.")
    release: str | None = option(None, help="Be the controller of this Kafka release. Default: the source's.")
    data_dir: Path | None = option_of_serve("data_dir")
    session_timeout_ms: int = option_of_serve("session_timeout_ms")
    brokers: Literal["none", "live", "all"] = option(
        "none", help="Simulated brokers in place of those that were not fenced, or of all registered ones."
    )
    admin_port: str = option_of_serve("admin_port")
    virtual_clock: bool = option_of_serve(
        "virtual_clock", "Stop time until POST /v1/clock/advance. It excludes --brokers."
    )
    stubs: Path | None = option_of_serve("stubs")
    until_stdin_ends: bool = option_of_serve("until_stdin_ends")
    seed: int | None = option_of_serve("seed")
    log_level: str = option_of_serve("log_level")


def twin(options: Options) -> None:
    """Run a twin until a signal; see ABOUT."""
    gc.set_threshold(*_GC_THRESHOLDS)
    if options.source is None:
        raise OptionError("say of what: --from DIR|CHECKPOINT|PCAP", "--from")
    history = history_of(options.source)
    with blaming("--at"):
        moment = history.moment(options.at)
    with blaming("--from"):
        state = twin_state(history, moment)
    report(history, moment)
    given = {name: value for name, value in vars(options).items() if name in OPTIONS and value is not None}
    del given["brokers"]
    chosen = {
        "node_id": state.node_id,
        "release": state.release,
        "metadata_version": str(moment.image.metadata_version),
        "virtual_start_ms": moment.timestamp_ms or VIRTUAL_START_MS,
        **_brokers(options.brokers, moment.image, state.release),
        **({"cluster_id": history.cluster_id} if history.cluster_id else {}),
    }
    with tempfile.TemporaryDirectory(prefix="mockraft-twin-") as folder:
        chosen["initial_state"] = write_twin(Path(folder) / "twin.checkpoint", state, moment.timestamp_ms)
        code = command.run(defaults() | chosen | given | {"given": frozenset((*chosen, *given))})
    if code:
        raise SystemExit(code)


def _brokers(which: Literal["none", "live", "all"], image: Image, release: str) -> dict[str, Any]:
    """Return the options of `serve` for simulated brokers."""
    from mockraft.twin.brokers import controller_release, registered_fleet

    if which == "none":
        return {"brokers": 0}
    count = sum(which == "all" or not each.fenced for each in image.cluster.brokers.values())
    return {
        "brokers": count,
        "registered_brokers": partial(registered_fleet, image, which),
        "release": controller_release(release),
    }


def diff(source: Source, at: Point = None, to: ToPoint = None, each: Each = False, as_json: AsJson = False) -> None:
    """Print the changes; see DIFF_ABOUT."""
    history = history_of(source)
    with blaming("--at"):
        before = history.moment(history.first_offset if at is None else at)
    with blaming("--to"):
        after = history.moment(to)
    if each and before.id > after.id:
        raise OptionError("with --each it is a point after that of --at", "--to")
    if not as_json:
        for moment in (before, after):
            report(history, moment)
    ends = {"from": before.id.end_offset - 1, "to": after.id.end_offset - 1}
    found: list[tuple[str, Tree]]
    if each:
        found = []
        for applied, change in each_change(history, before, after):
            time = time_text(applied.timestamp_ms)
            tree: Tree = {
                "firstOffset": applied.first_offset,
                "offset": applied.offset,
                "time": time,
                **change.to_json(),
            }
            found.append((f"{applied.offsets}  {time}  {change}", tree))
    else:
        found = [(str(change), change.to_json()) for change in changes(before.image, after.image)]
    if as_json:
        print(json.dumps({**ends, "changes": [tree for _, tree in found]}, indent=1, ensure_ascii=False))
        return
    for text, _ in found:
        print(text)
    if not found:
        print("nothing changed")


def records(source: Source, at: Point = None, to: ToPoint = None, as_json: AsJson = False) -> None:
    """Print the records; see RECORDS_ABOUT."""
    history = history_of(source)
    with blaming("--at"):
        first = history.first_offset if at is None else history.end_of(at) - 1
    with blaming("--to"):
        end_offset = history.end_of(to)
        if to is not None and first >= end_offset:
            raise ValueError(f"{to} is before {at}, the point of --at")
    for note in history.notes:
        print(f"mockraft twin: {note}", file=sys.stderr)
    found = []
    with blaming("--from", WireError):
        for each in history.records():
            if first <= each.offset < end_offset:
                name = type(each.record).__name__
                view = LogRecord(each.offset, each.epoch, each.timestamp_ms, name, each.version, each.record)
                found.append(view.to_json())
                if not as_json:
                    time = time_text(each.timestamp_ms)
                    print(f"{each.offset}  {time}  {name}  {compact(found[-1]['record'])}")
    if as_json:
        print(json.dumps({"records": found}, indent=1, ensure_ascii=False))


COMMANDS = {
    "twin": Command(
        "twin",
        twin,
        ABOUT,
        subcommands={
            "diff": Command("diff", diff, DIFF_ABOUT),
            "records": Command("records", records, RECORDS_ABOUT),
            "plan": plan.COMMAND,
        },
    )
}
