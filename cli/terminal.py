"""The output of commands: names from the wire are shown without control characters, and are no markup.

`main` makes both standard streams printable, for `print` and tracebacks. Rich writes escape sequences of its own, so a
`Terminal` makes the text printable before it adds them, and writes to the stream behind.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from mockraft.wire.printable import printable
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

PIPE_COLUMNS = 200
"""Width where stdout is no terminal: a file or a pipe has none to save."""


class Terminal(Console):
    """A console that shows each text as it is, except what is not printable; a pipe gets wide lines."""

    def __init__(self, **options: Any) -> None:
        width = None if sys.stdout.isatty() else PIPE_COLUMNS
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, "width": width, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments with their text printable; those that control the terminal are Rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
