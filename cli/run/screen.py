"""The screen of `mockraft run`: a picture in, something Rich can draw out. No state, no clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from mockraft.cli.run.picture import BrokerRow, Line, Picture
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDE = 104
MEDIUM = 84
LINES_MIN = 2
_STATE_STYLES = {
    "running": "green",
    "starting": "yellow",
    "recovery": "yellow",
    "leaving": "yellow",
    "left": "dim",
    "gone": "red",
}


class Screen:
    """A picture laid out for whatever width and height the terminal has when it is drawn."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.size.height
        top: list[RenderableType] = [
            _header(self.picture, width),
            Text(),
            _brokers(self.picture.brokers, width),
            Text(),
        ]
        bottom: list[RenderableType] = [Text(), _hints(self.picture, width)]
        used = sum(len(console.render_lines(part, options.update(height=None))) for part in (*top, *bottom))
        room = max(LINES_MIN, height - used - 3)
        yield Padding(Group(*top, _journal(self.picture, room, width), *bottom), (0, 1))


def clock_text(ms: int) -> str:
    """A span of time as m:ss or h:mm:ss."""
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def age_text(ms: int | None) -> str:
    """Return an age as a short text."""
    if ms is None:
        return "never"
    return f"{ms / 1000:.1f} s" if ms < 60_000 else clock_text(ms)


def _header(picture: Picture, width: int) -> RenderableType:
    title = Table.grid(expand=True)
    title.add_column(ratio=1)
    title.add_column(justify="right")
    title.add_row(Text("mockraft", style="bold cyan"), Text(f"up {clock_text(picture.up_ms)}", style="dim"))
    facts = (
        ("bootstrap", picture.bootstrap),
        ("cluster id", picture.cluster_id),
        ("metadata.version", picture.metadata_version),
        ("epoch", str(picture.leader_epoch)),
        ("high watermark", str(picture.high_watermark)),
        ("topics", str(picture.topics)),
    )
    columns = 3 if width >= MEDIUM else 2
    grid = Table.grid(padding=(0, 2, 0, 0))
    for row in range(0, len(facts), columns):
        cells: list[Text] = []
        for label, value in facts[row : row + columns]:
            cells += [
                Text(label, style="dim"),
                Text(value, style="bold" if label == "bootstrap" else "", overflow="fold"),
            ]
        grid.add_row(*cells)
    return Group(title, grid)


def _brokers(rows: Sequence[BrokerRow], width: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("broker", justify="right", no_wrap=True)
    table.add_column("state", min_width=9, no_wrap=True)
    table.add_column("fenced", min_width=6, no_wrap=True)
    for name in ("epoch", "dirs", "heartbeat", "per s", "log end", "lag"):
        table.add_column(name, justify="right", min_width=len(name), no_wrap=True)
    if width >= WIDE:
        table.add_column("clients", min_width=15, no_wrap=True)
    if width >= MEDIUM:
        table.add_column("incarnation", min_width=9, no_wrap=True)
    for row in rows:
        dirs = f"{row.log_dirs - row.offline_dirs}/{row.log_dirs}" if row.offline_dirs else str(row.log_dirs)
        cells: list[str | Text] = [
            Text(str(row.broker_id), style="bold"),
            Text(row.state, style=_STATE_STYLES.get(row.state, "")),
            Text("yes", style="yellow") if row.fenced else Text("no", style="dim"),
            str(row.broker_epoch),
            Text(dirs, style="red" if row.offline_dirs else ""),
            Text(age_text(row.heartbeat_age_ms), style="red" if row.state == "gone" else ""),
            f"{row.heartbeats_per_s:.1f}",
            "-" if row.metadata_offset is None else str(row.metadata_offset),
            "-" if row.lag is None else str(row.lag),
        ]
        if width >= WIDE:
            cells.append(row.clients)
        if width >= MEDIUM:
            cells.append(Text(row.incarnation[:8] + "…", style="dim"))
        table.add_row(*cells)
    if not rows:
        table.add_row("-", Text("nobody yet", style="dim"))
    return table


def _journal(picture: Picture, room: int, width: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("time", no_wrap=True, min_width=12)
    table.add_column("request", no_wrap=True, min_width=min(26, width // 4))
    table.add_column("from", no_wrap=True, min_width=10)
    table.add_column("answer", no_wrap=True, overflow="ellipsis")
    table.add_column("took", justify="right", no_wrap=True, min_width=6)
    lines = picture.lines[-room:]
    for line in lines:
        table.add_row(*_cells(line))
    for _ in range(room - len(lines)):
        table.add_row("")
    rates = "   ".join(f"{name} {rate:.1f}/s" for name, rate in picture.rates.items() if rate)
    return Group(table, Text(rates, style="dim", no_wrap=True, overflow="ellipsis"))


def _cells(line: Line) -> list[Text]:
    at = time.strftime("%H:%M:%S", time.localtime(line.at_ms / 1000)) + f".{line.at_ms % 1000:03}"
    return [
        Text(at, style="dim"),
        Text(line.what),
        Text(line.who),
        Text(line.outcome, style="red" if line.is_error else "dim"),
        Text("<1 ms" if line.took_ms < 1 else f"{line.took_ms} ms", style="dim"),
    ]


def _hints(picture: Picture, width: int) -> RenderableType:
    """Return commands to try next, in another terminal."""
    next_id = max((row.broker_id for row in picture.brokers), default=0) + 1
    # `make run` starts it from .venv, which is not on the PATH.
    started_as = "mockraft" if which("mockraft") or Path(sys.argv[0]).name != "mockraft" else sys.argv[0]
    servers = next((row.clients for row in picture.brokers), "HOST:PORT")
    hints = (
        ("one more", f"{started_as} broker --id {next_id} --bootstrap-controller {picture.bootstrap}"),
        ("quorum", f"kafka-metadata-quorum --bootstrap-controller {picture.bootstrap} describe --replication"),
        ("clients", f"kafka-topics --bootstrap-server {servers} --create --topic t"),
        ("a real one", f"kafka-storage format -t {picture.cluster_id} -c broker.properties"),
        ("quit", "Ctrl-C"),
    )
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=10)
    grid.add_column(overflow="fold")
    for label, command in hints:
        if width >= MEDIUM or label in ("one more", "quit"):
            grid.add_row(label, Text(command))
    return grid
