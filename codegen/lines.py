"""Lines of Python under construction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """A growing list of source lines with the current indentation."""

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def add(self, *lines: str) -> None:
        """Append lines at the present depth; an empty one stays empty."""
        indentation = "    " * self._depth
        self._lines.extend(indentation + line if line else "" for line in lines)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        """Append `opening` and indent the lines added inside the `with`; there must be one."""
        self.add(opening)
        start = len(self._lines)
        self._depth += 1
        yield
        assert len(self._lines) > start, f"{opening} has no body"
        self._depth -= 1

    def text(self) -> str:
        """Return all lines, ending with a newline."""
        return "\n".join(self._lines) + "\n"
