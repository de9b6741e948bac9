"""Decorators of methods that select requests by API.

They change nothing; for type checkers, request_types.pyi declares an overload for each API, and the keywords of stubs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MethodT = TypeVar("MethodT", bound=Callable[..., object])


def _declared_elsewhere(method: MethodT) -> MethodT:
    return method


finds_requests = verifies_requests = waits_for_requests = _declared_elsewhere
