"""The decorator of `requests`.

It changes nothing; for type checkers, request_types.pyi declares an overload for each API, and the keywords of stubs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

MethodT = TypeVar("MethodT", bound=Callable[..., object])


def finds_requests(method: MethodT) -> MethodT:
    """Return the method; its overloads are declared elsewhere."""
    return method
