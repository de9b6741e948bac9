"""Base of the reader and writer emitters: the lines, the variables' names, the run of fixed fields."""

from __future__ import annotations

from mockraft.codegen.lines import Lines
from mockraft.codegen.needs import Needs
from mockraft.codegen.spec import MessageSpec


class FunctionEmitter:
    """Emits the function of one version of a message, straight-line code.

    Fixed fields are collected in a run, (format letter, expression) each, together with the length byte that follows
    them, and are packed or unpacked in one call.
    """

    def __init__(self, spec: MessageSpec, version: int, needs: Needs) -> None:
        self._spec = spec
        self._version = version
        self._flexible = spec.flexible_at(version)
        self._needs = needs
        self._lines = Lines(1)
        self._run: list[tuple[str, str]] = []
        self._names = 0

    def _name(self, letter: str) -> str:
        """Return a variable name that the function does not use yet."""
        self._names += 1
        return f"{letter}{self._names}"
