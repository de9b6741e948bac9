"""Standard streams of the process: present, written line by line, and without control characters from the wire."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import TextIO, cast

from mockraft.wire.printable import printable


class PrintableStream:
    """A stream on which only line breaks and tabs are control characters; all else is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.rich_proxied_file = stream
        """Where Rich writes its escape sequences; cli/terminal.py makes the text between them printable."""

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._stream, name)
        return found

    def write(self, text: str) -> int:
        """Write text as it may be printed."""
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)


def prepare() -> None:
    """Open closed streams, and have lines reach their reader at once, with nothing that steers a terminal."""
    _open_closed_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # into a pipe, too: programs wait there for a ready line
    for name in ("stdout", "stderr"):
        if not isinstance(stream := getattr(sys, name), PrintableStream):
            setattr(sys, name, cast(TextIO, PrintableStream(stream)))


def _open_closed_descriptors() -> None:
    """Open /dev/null for standard streams that are closed: sockets and files must not get their numbers."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, open(descriptor, "w" if descriptor else "r", closefd=False))  # noqa: SIM115
