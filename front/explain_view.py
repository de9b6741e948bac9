"""How `mockraft explain` looks on a terminal: bytes on the left, what they are on the right."""

import re
from itertools import takewhile

from mockraft.wire.explain import Explanation, Line
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BYTES_PER_ROW, BYTES_PER_NARROW_ROW = 8, 4
WIDE_COLUMNS = 110
ROWS_MAX = 2
REST_BYTES_MAX = 64

_PART = re.compile(r"[^.\[]+|\[\d+\]")
_STYLES = (
    ("tag", "yellow"),
    ("array", "blue"),
    ("size", "blue"),
    ("length", "blue"),
    ("string", "green"),
    ("uuid", "magenta"),
    ("bytes", "bright_black"),
    ("records", "bright_black"),
    ("bool", "bright_cyan"),
)


def show(explanation: Explanation, console: Console) -> None:
    """Print an explanation: its lines as a tree beside the bytes, then the break, if there is one."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold dim")
    table.add_column("offset", justify="right", no_wrap=True)
    table.add_column("bytes", no_wrap=True)
    table.add_column("field", no_wrap=True)
    is_wide = console.width >= WIDE_COLUMNS
    if is_wide:
        table.add_column("type", no_wrap=True, style="dim")
    table.add_column("value", overflow="fold", min_width=16)
    above: list[str] = []
    arrays = {line.path for line in explanation.lines if line.type.endswith("array")}
    for line in explanation.lines:
        parts = _parts(line.path, arrays)
        for depth in range(_common(above, parts[:-1]), len(parts) - 1):
            if parts[: depth + 1] != above[: depth + 1]:
                table.add_row("", "", _name(parts, depth))
        table.add_row(*_cells(explanation.data, line, parts, is_wide))
        above = parts
    console.print(table)
    console.print()
    if explanation.error is None:
        size = f"{len(explanation.data)} bytes, all of them read"
        console.print(Text.assemble(("✓ ", "bold green"), (explanation.title, "bold"), f": {size}"))
    else:
        _show_break(explanation, console)


def _parts(path: str, arrays: set[str]) -> list[str]:
    """The path in steps; an index is a step of its own under an array that has a line, and part of the name if not."""
    parts: list[str] = []
    for found in _PART.finditer(path):
        if found[0].startswith("[") and path[: found.start()] not in arrays:
            parts[-1] += found[0]
        else:
            parts.append(found[0])
    return parts


def _common(above: list[str], parts: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, parts, strict=False)))


def _name(parts: list[str], depth: int) -> Text:
    return Text("  " * depth + parts[depth], style="bold" if depth < len(parts) - 1 else "")


def _cells(data: bytes, line: Line, parts: list[str], is_wide: bool) -> list[Text]:
    style = next((style for word, style in _STYLES if word in line.type), "cyan")
    if line.value == "null" or line.value.startswith("no "):
        style = "dim"
    width = BYTES_PER_ROW if is_wide else BYTES_PER_NARROW_ROW
    return [
        Text(str(line.offset), style="dim"),
        Text(_hex(data[line.offset : line.offset + line.length], width), style=style),
        _name(parts, len(parts) - 1),
        *([Text(line.type)] if is_wide else []),
        Text(line.value, style="bold red" if _is_error(line) else style),
    ]


def _is_error(line: Line) -> bool:
    return line.path.lower().endswith("errorcode") and not line.value.startswith("0 ")


def _hex(data: bytes, width: int) -> str:
    shown = width * ROWS_MAX
    if len(data) > shown:
        # The last place of the last row says how many more there are.
        data, more = data[: shown - 2], f" … +{len(data) - shown + 2}"
    else:
        more = ""
    rows = [data[i : i + width].hex(" ") for i in range(0, len(data), width)]
    return "\n".join(rows) + more


def _show_break(explanation: Explanation, console: Console) -> None:
    error = explanation.error
    assert error is not None
    offset = explanation.read_bytes if error.offset is None else error.offset
    where = Text.assemble(("✗ ", "bold red"), (explanation.title, "bold"), f" breaks at offset {offset}")
    if error.field:
        where.append(f", in {error.field}")
    where.append(f": {error.what}", style="red")
    console.print(where)
    rest = explanation.data[explanation.read_bytes :]
    if rest:
        shown = rest[:REST_BYTES_MAX].hex(" ") + (" …" if len(rest) > REST_BYTES_MAX else "")
        console.print(Padding(f"{len(rest)} bytes from {explanation.read_bytes} on were not read:", (0, 0, 0, 2)))
        console.print(Padding(Text(shown, style="red"), (0, 0, 0, 2)))
