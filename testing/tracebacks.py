"""Errors of a test as pytest shows them: the test's own line, without mockraft's code behind it.

mockraft refuses a wrong call (an unknown API, a misspelled option) with a `raise` somewhere inside; the line that helps
is the call. Errors that mockraft does not raise on purpose are defects, and keep every frame.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import TracebackType

_RAISE = dis.opmap["RAISE_VARARGS"]
_ADAPTERS = ("mockraft.testing.facades", "mockraft.testing.faults")
"""Modules whose wrappers pass a call on: a TypeError there is about the arguments of the call."""
_RUNNERS = ("_pytest", "pluggy", "pytest_asyncio")


def end_at_call(error: BaseException) -> None:
    """End the traceback of a refusal at the call into mockraft; those of other errors stay."""
    if not _is_refusal(error):
        return
    frames = list(_frames(error))
    modules = [_module(each) for each in frames]
    own = 1 + max((at for at, module in enumerate(modules) if module.startswith(_RUNNERS)), default=-1)
    call = next((at for at in range(own, len(frames)) if _is_ours(frames[at])), 0)
    if call > own:
        frames[call - 1].tb_next = None
        hidden = error.__cause__ or error.__context__
        if hidden is not None and any(map(_is_ours, _frames(hidden))):
            error.__cause__, error.__suppress_context__ = None, True


def _is_refusal(error: BaseException) -> bool:
    """Return True if mockraft raised an error on purpose, about a call from outside."""
    frames = list(_frames(error))
    if not frames or not isinstance(error, Exception) or type(error) is AssertionError:
        return False
    innermost = frames[-1]
    module = _module(innermost)
    if isinstance(error, TypeError) and module in _ADAPTERS:
        return True
    code = innermost.tb_frame.f_code.co_code
    return _is_ours(innermost) and code[innermost.tb_lasti] == _RAISE


def _frames(error: BaseException) -> Iterator[TracebackType]:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


def _module(at: TracebackType) -> str:
    return str(at.tb_frame.f_globals.get("__name__", ""))


def _is_ours(at: TracebackType) -> bool:
    module = _module(at)
    if module == "enum":  # Python 3.11 raises the error for an unknown member there.
        module = getattr(at.tb_frame.f_locals.get("cls"), "__module__", "")
    return module.partition(".")[0] == "mockraft"
