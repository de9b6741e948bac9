"""Waits for conditions in an event loop."""

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], T | Literal[False] | None], timeout_s: float = 40) -> T:
    """Wait until `condition` returns a true value, and return it."""
    async with asyncio.timeout(timeout_s):
        while not (found := condition()):
            await asyncio.sleep(0.005)
    return found
