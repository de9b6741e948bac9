"""Lines of some modules by the tests that run them."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Line = tuple[str, int]
Trace = Callable[[FrameType, str, Any], Any]


class CoverageByTest:
    """Records which test runs which line of the modules."""

    def __init__(self, modules: Collection[str]) -> None:
        self.modules = modules
        self.tests: dict[Line, set[int]] = defaultdict(set)
        self._seen: set[Line] = set()

    @contextmanager
    def record(self, test: int) -> Iterator[None]:
        """Record the lines that run until the end, in any thread that starts meanwhile, as those of this test."""
        seen: set[Line] = set()
        self._seen = seen
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
            for line in seen:
                self.tests[line].add(test)

    def of_lines(self, module: str, first: int, last: int) -> set[int]:
        """Return the tests that run any of these lines."""
        return set().union(*(self.tests.get((module, line), ()) for line in range(first, last + 1)))

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Trace | None:
        name: str = frame.f_globals.get("__name__", "")
        if name not in self.modules:
            return None
        add = self._seen.add

        def line(frame: FrameType, event: str, argument: Any) -> Trace:
            add((name, frame.f_lineno))
            return line

        return line
