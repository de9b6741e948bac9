"""Ctrl-C and SIGTERM for commands that run an event loop, and the end of their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def until_signal(stopped: asyncio.Event, *work: asyncio.Future[Any], timeout_s: float | None = None) -> None:
    """Wait until a signal came, something of the work is done, or the time is over."""
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait((*work, waiting), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    await end_tasks(waiting)


async def end_tasks(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs; raise what broke."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
