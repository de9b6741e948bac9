"""The exit codes of all commands: each number has one meaning, whichever command ends with it."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class ExitCode(IntEnum):
    """An exit code with its meaning, as the help of commands and docs/reference/command-line.md have it."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """Return the member for a code."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "done"
    FAILED = 1, "the result is negative"
    USAGE = 2, "a wrong option, or a file that cannot be read or written"
    CANNOT_LISTEN = 3, "an address cannot be listened on"
    UNUSABLE_DIRECTORY = 4, "a data or log directory cannot be used"
    CANNOT_CONTINUE = 5, "the controller cannot continue (a full disk, an I/O error, a data directory that was deleted)"
    NO_ANSWER = 6, "no usable answer from a controller"
    MISSING = 7, "a package or program that it needs is missing"
    INTERRUPTED = 130, "interrupted"


def exit_codes(*others: ExitCode, done: str = "done", failed: str = "") -> str:
    """Return the sentence of a command's help with its exit codes; `done` and `failed` are what 0 and 1 mean there."""
    own = {ExitCode.DONE: done, **({ExitCode.FAILED: failed} if failed else {})}
    codes = sorted({*own, ExitCode.USAGE, *others})
    return f"Exit codes: {', '.join(f'{code:d} {own.get(code, code.meaning)}' for code in codes)}.\n"
