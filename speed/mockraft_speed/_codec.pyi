from collections.abc import Callable
from typing import Any

class Codec:
    """The plans of a class, made by `build` when a version first occurs."""

    def __init__(self, build: Callable[[int], tuple[Any, ...]], min_version: int, max_version: int) -> None: ...

def paths(codec: Codec, read: Any, read_from: Any, write: Any) -> tuple[Any, Any, Any]:
    """Return callables that take the place of these pure functions, which are their `__wrapped__`."""
