"""The screen of `mockraft run`: a moment of a controller in, something Rich can draw out."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import which
from typing import NamedTuple

from mockraft.kafka_api.journal import Entry
from mockraft.kafka_api.journal.lines import EntryText, entry_text
from mockraft.releases import metadata_version
from mockraft.server.running import RunningController
from mockraft.server.state.state import State
from mockraft.server.views import BrokerView
from mockraft.wire.printable import printable_line
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

MEDIUM = 84
ENTRIES_SHOWN = 300
"""Number of newest entries of the journal from which lines are made."""
LINES_MIN = 2

_STATE_STYLES = {"running": "green", "starting": "yellow", "leaving": "yellow", "left": "dim", "gone": "red"}


class Moment(NamedTuple):
    """Figures of a controller on the screen; `up_ms` is the time since its start, `journal` has its newest lines."""

    cluster_id: str
    bootstrap: str
    metadata_version: str
    epoch: int
    high_watermark: int
    topics: int
    up_ms: int
    now_ms: int
    brokers: Sequence[BrokerView]
    journal: Sequence[str]

    @classmethod
    def of(cls, running: RunningController, started_ms: int) -> Moment:
        """Return how a controller is now."""
        controller, now_ms = running.controller, running.clock.now_ms()
        level = controller.image.metadata_version
        return cls(
            cluster_id=running.config.cluster_id,
            bootstrap=running.bootstrap,
            metadata_version=f"{metadata_version(level).name} ({level})" if level else "none",
            epoch=controller.raft.epoch,
            high_watermark=controller.log.high_watermark,
            topics=len(controller.image.topics.by_id),
            up_ms=now_ms - started_ms,
            now_ms=now_ms,
            brokers=State(lambda: {running.config.node_id: running}).brokers(),
            journal=journal_lines(running.node.journal.entries[-ENTRIES_SHOWN:]),
        )


def journal_lines(entries: Iterable[Entry]) -> list[str]:
    """Return lines of the journal, equal ones as one with their number, at the place of the last."""
    newest: dict[object, tuple[int, EntryText]] = {}
    for text in map(entry_text, entries):
        key = (text.stream, text.kind)
        count, _ = newest.pop(key, (0, None))
        newest[key] = (count + 1, text)
    rows = []
    for count, text in newest.values():
        at = time.strftime("%H:%M:%S", time.localtime(text.at_ms / 1000)) + f".{text.at_ms % 1000:03}"
        what = " ".join(text.what.split()[:2]) if text.kind else text.what
        rows.append((at, text.who.partition(",")[0], what, text.outcome + (f"  ×{count}" if count > 1 else "")))
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return ["  ".join([*map(str.ljust, row, widths), row[3]]) for row in rows]


def state_of(broker: BrokerView) -> str:
    """Return a broker's state in a word; one whose session ended without a controlled shutdown is gone."""
    if broker.in_controlled_shutdown:
        return "left" if broker.fenced else "leaving"
    if not broker.fenced:
        return "running"
    return "gone" if broker.last_contact_ms is None else "starting"


def clients_of(broker: BrokerView) -> str:
    """Return the first listener that a broker advertises, as host:port."""
    return next((printable_line(f"{each.host}:{each.port}") for each in broker.listeners), "-")


class Screen:
    """A moment laid out for whatever width and height the terminal has when it is drawn."""

    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.size.height
        moment = self._moment
        top: list[RenderableType] = [_header(moment, width), Text(), _brokers(moment, width), Text()]
        bottom: list[RenderableType] = [Text(), _hints(moment, width)]
        used = sum(len(console.render_lines(part, options.update(height=None))) for part in (*top, *bottom))
        room = max(LINES_MIN, height - used - 1)
        lines = [*moment.journal[-room:], *[""] * (room - len(moment.journal))]
        journal = Text("\n".join(lines), style="dim", no_wrap=True, overflow="ellipsis")
        yield Padding(Group(*top, journal, *bottom), (0, 1))


def clock_text(ms: int) -> str:
    """A span of time as m:ss or h:mm:ss."""
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _header(moment: Moment, width: int) -> RenderableType:
    title = Table.grid(expand=True)
    title.add_column(ratio=1)
    title.add_column(justify="right")
    title.add_row(Text("mockraft", style="bold cyan"), Text(f"up {clock_text(moment.up_ms)}", style="dim"))
    facts = (
        ("bootstrap", moment.bootstrap),
        ("cluster id", moment.cluster_id),
        ("metadata.version", moment.metadata_version),
        ("epoch", str(moment.epoch)),
        ("high watermark", str(moment.high_watermark)),
        ("topics", str(moment.topics)),
    )
    columns = 3 if width >= MEDIUM else 2
    grid = Table.grid(padding=(0, 2, 0, 0))
    for row in range(0, len(facts), columns):
        cells: list[Text] = []
        for label, value in facts[row : row + columns]:
            style = "bold" if label == "bootstrap" else ""
            cells += [Text(label, style="dim", no_wrap=True), Text(value, style=style, overflow="fold")]
        grid.add_row(*cells)
    return Group(title, grid)


def _brokers(moment: Moment, width: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    names = ["broker", "state", "epoch", "dirs", "contact", "lag", "clients"]
    for name in names if width < MEDIUM else [*names, "incarnation"]:
        is_text = name in ("state", "clients", "incarnation")
        table.add_column(name, justify="left" if is_text else "right", min_width=9 if is_text else 3, no_wrap=True)
    for broker in moment.brokers:
        state, offline = state_of(broker), sum(each.state == "offline" for each in broker.log_dirs)
        dirs, contact_ms = len(broker.log_dirs), broker.last_contact_ms
        cells = [
            Text(str(broker.broker_id), style="bold"),
            Text(state, style=_STATE_STYLES[state]),
            Text(str(broker.epoch)),
            Text(f"{dirs - offline}/{dirs}" if offline else str(dirs), style="red" if offline else ""),
            Text("-" if contact_ms is None else f"{(moment.now_ms - contact_ms) / 1000:.1f} s"),
            Text("-" if broker.lag is None else str(broker.lag)),
            Text(clients_of(broker)),
            Text(broker.incarnation_id[:8] + "…", style="dim"),
        ]
        table.add_row(*cells[: len(table.columns)])
    if not moment.brokers:
        table.add_row("-", Text("nobody yet", style="dim"))
    return table


def _hints(moment: Moment, width: int) -> RenderableType:
    """Return commands to try next, in another terminal."""
    next_id = max((broker.broker_id for broker in moment.brokers), default=0) + 1
    # `make run` starts it from .venv, which is not on the PATH.
    started_as = "mockraft" if which("mockraft") or Path(sys.argv[0]).name != "mockraft" else sys.argv[0]
    servers = shlex.quote(next(map(clients_of, moment.brokers), "HOST:PORT"))  # a broker named it
    hints = (
        ("one more", f"{started_as} broker --id {next_id} --bootstrap-controller {moment.bootstrap}"),
        ("quorum", f"kafka-metadata-quorum --bootstrap-controller {moment.bootstrap} describe --replication"),
        ("clients", f"kafka-topics --bootstrap-server {servers} --create --topic t"),
        ("a real one", f"kafka-storage format -t {moment.cluster_id} -c broker.properties"),
        ("quit", "Ctrl-C"),
    )
    if width < MEDIUM:
        # Without its label the command fits into a line of 80 columns, and can be pasted.
        return Text(f"{hints[0][1]}\nCtrl-C to quit")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=10)
    grid.add_column(overflow="fold")
    for label, command in hints:
        grid.add_row(label, Text(command))
    return grid
