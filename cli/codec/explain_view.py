"""Layout of `mockraft explain`: bytes on the left, their meaning on the right, as wide as the terminal allows."""

import re
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from typing import NamedTuple

from mockraft.wire.explain import Explanation, Line
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

BYTES_PER_ROW, BYTES_PER_NARROW_ROW = 8, 4
HEX_ROWS_MAX = 2
WIDE_COLUMNS = 110
VALUE_COLUMNS_MIN = 16
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


class _Row(NamedTuple):
    """Text of one line; `hex` is cut into pieces below each other."""

    offset: str
    hex: tuple[str, ...]
    field: str
    type: str
    value: str
    style: str
    field_style: str
    value_style: str


def show(explanation: Explanation, console: Console) -> None:
    """Print an explanation: its lines as a tree beside the bytes, then the break, if there is one."""
    is_wide = console.width >= WIDE_COLUMNS
    bytes_per_row = BYTES_PER_ROW if is_wide else BYTES_PER_NARROW_ROW
    head = _Row("offset", ("bytes",), "field", "type", "value", "bold dim", "bold dim", "bold dim")
    rows = [head, *_rows(explanation, bytes_per_row)]
    # Measured here and printed line by line: a table of rich would take seconds for a large Fetch response.
    widths = [
        max(len(row.offset) for row in rows),
        max(len(piece) for row in rows for piece in row.hex),
        max(cell_len(row.field) for row in rows),
        max(len(row.type) for row in rows) if is_wide else 0,
    ]
    taken = sum(width + 2 for width in widths if width)
    room = max(console.width - taken, VALUE_COLUMNS_MIN)
    widths[2] -= max(taken + room - console.width, 0)
    for row in rows:
        for text in _texts(row, widths, room):
            if console.color_system is None:
                console.file.write(text.plain.rstrip() + "\n")
            else:
                console.print(text, no_wrap=True, overflow="ignore", crop=False)
    console.print()
    if explanation.error is None:
        size = f"{len(explanation.data)} bytes, all of them read"
        console.print(Text.assemble(("✓ ", "bold green"), (explanation.title, "bold"), f": {size}"))
    else:
        _show_break(explanation, console)


def _texts(row: _Row, widths: list[int], room: int) -> Iterator[Text]:
    """The printed lines of a row: more than one where bytes or value need it."""
    pieces = zip_longest(row.hex, chop_cells(row.value, room) or [""], fillvalue="")
    for number, (hex_piece, value_piece) in enumerate(pieces):
        is_first = number == 0
        text = Text(f"{row.offset if is_first else '':>{widths[0]}}  ", style="")
        text.stylize("dim")
        text.append(f"{hex_piece:<{widths[1]}}  ", row.style)
        text.append(_fitted(row.field if is_first else "", widths[2]) + "  ", row.field_style)
        if widths[3]:
            text.append(f"{row.type if is_first else '':<{widths[3]}}  ", "dim")
        text.append(value_piece, row.value_style)
        yield text


def _fitted(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def _rows(explanation: Explanation, bytes_per_row: int) -> Iterator[_Row]:
    """A row for each line, and one for each step of its path that no line stands for."""
    above: list[str] = []
    arrays = {line.path for line in explanation.lines if line.type.endswith("array")}
    for line in explanation.lines:
        parts = _parts(line.path, arrays)
        for depth in range(_common(above, parts[:-1]), len(parts) - 1):
            if parts[: depth + 1] != above[: depth + 1]:
                yield _Row("", ("",), "  " * depth + parts[depth], "", "", "", "bold", "")
        style = next((style for word, style in _STYLES if word in line.type), "cyan")
        if line.value == "null" or line.value.startswith("no "):
            style = "dim"
        yield _Row(
            str(line.offset),
            _hex(explanation.data[line.offset : line.offset + line.length], bytes_per_row),
            "  " * (len(parts) - 1) + parts[-1],
            line.type,
            line.value,
            style,
            "",
            "bold red" if _is_error(line) else style,
        )
        above = parts


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


def _is_error(line: Line) -> bool:
    return line.path.lower().endswith("errorcode") and not line.value.startswith("0 ")


def _hex(data: bytes, width: int) -> tuple[str, ...]:
    shown = width * HEX_ROWS_MAX
    more = ""
    if len(data) > shown:
        # The last place of the last row says how many more there are.
        data, more = data[: shown - 2], f" … +{len(data) - shown + 2}"
    rows = [data[at : at + width].hex(" ") for at in range(0, len(data), width)] or [""]
    return (*rows[:-1], rows[-1] + more)


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
        console.print(
            Padding(f"{len(rest)} bytes from {explanation.read_bytes} on were not read:", (0, 0, 0, 2), expand=False)
        )
        console.print(Padding(Text(shown, style="red"), (0, 0, 0, 2), expand=False))
