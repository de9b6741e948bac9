"""Matplotlib figures as inline SVG: with the page's colours, unique ids and no external resources."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, DIM, LINE, BAD, GOOD = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05"
SERIES = tuple(f"#0a0b1{number}" for number in range(8))
"""Placeholder colours, replaced by those of the page, which differ between light and dark mode."""
_VARIABLES = {INK: "ink", DIM: "dim", LINE: "line", BAD: "bad", GOOD: "good"} | {
    colour: f"s{number}" for number, colour in enumerate(SERIES)
}
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "mockraft",
    "svg.fonttype": "none",
    **dict.fromkeys(("font.size", "axes.titlesize"), 9),
    "legend.fontsize": 8,
    "axes.titlelocation": "left",
    "text.color": INK,
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), DIM),
    **dict.fromkeys(("axes.edgecolor", "grid.color"), LINE),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon", "text.parse_math"), False),
}


class Shape(NamedTuple):
    """Width of a figure in inches, for a desktop or a phone; `is_narrow` reduces details."""

    name: str
    width: float
    is_narrow: bool


WIDE, NARROW = Shape("wide", 10.4, False), Shape("narrow", 4.2, True)
Draw = Callable[[Figure, Shape], None]


class Plot(NamedTuple):
    """A figure in both shapes, as SVG, and its text alternative."""

    name: str
    words: str
    wide: str
    narrow: str


def plot(name: str, words: str, draw: Draw, height: float, narrow_height: float | None = None) -> Plot:
    """Draw a figure in both shapes; heights are in inches."""
    drawn = []
    for shape in (WIDE, NARROW):
        with matplotlib.rc_context(_STYLE):
            inches = height if shape is WIDE else narrow_height or height
            figure = Figure(figsize=(shape.width, inches), layout="constrained")
            draw(figure, shape)
            drawn.append(_inline(figure, f"{name}-{shape.name}", words))
    return Plot(name, words, *drawn)


def _inline(figure: Figure, name: str, words: str) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(url\(#|xlink:href="#)', rf"\1{name}-", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    text = re.sub(
        r"font: (\S+)px [^;\"]*", r"font: \1px Segoe UI, Roboto, Liberation Sans, DejaVu Sans, Arial, sans-serif", text
    )
    box = re.search(r'viewBox="([^"]+)"', text)
    head = f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{html.escape(words)}">'
    return re.sub(r"<svg[^>]*>", head, text, count=1)


def bare(axis: Axes) -> None:
    """Draw a faint grid behind the data."""
    axis.grid(visible=True, alpha=0.6, linewidth=0.6)
    axis.set_axisbelow(True)
