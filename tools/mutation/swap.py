"""Replacement of the code of live functions, so that a mutant needs no new import of anything."""

from __future__ import annotations

import functools
import gc
from collections import defaultdict
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType

OPTIMIZED = 0x1
"""Flag of functions' code; that of modules and classes has it not (CO_OPTIMIZED)."""

LiveFunctions = dict[tuple[str, str, int], list[FunctionType]]
"""Functions by module, qualified name and first line."""


def live_functions(modules: Collection[str]) -> LiveFunctions:
    """Return all functions that exist now, methods and closures included, of these modules."""
    found: LiveFunctions = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and (module := each.__globals__.get("__name__")) in modules:
            found[str(module), each.__code__.co_qualname, each.__code__.co_firstlineno].append(each)
    return found


def clear_caches() -> None:
    """Empty every functools.cache: what unchanged code left there would hide a change."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper):
            each.cache_clear()


def swap(live: LiveFunctions, module: str, original: str, changed: str, file_name: str) -> int:
    """Give the functions of a module their code in another source; return how many got another one.

    0 means that the change compiles to the same code, or concerns what runs only at import.
    """
    old, new = (compile(source, file_name, "exec", dont_inherit=True) for source in (original, changed))
    swapped = 0
    for before, after in _different(old, new):
        for function in live.get((module, before.co_qualname, before.co_firstlineno), ()):
            function.__code__ = after
            swapped += 1
    return swapped


def _different(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield pairs of code that behave differently: functions in the given order, each with those that contain it."""
    pairs = list(zip(_nested(old), _nested(new), strict=False))
    inner = [pair for before, after in pairs for pair in _different(before, after)]
    yield from inner
    if old.co_flags & OPTIMIZED and (inner or _own(old) != _own(new)):
        yield old, new


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a code object does, without line numbers and nested functions."""
    consts = [type(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return code.co_code, consts, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
