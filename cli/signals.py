"""Ends of commands that run an event loop: Ctrl-C, SIGTERM, the end of standard input, and the end of their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
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


def stop_after_stdin(stopped: asyncio.Event) -> None:
    """Set the event when standard input ends; what it brings is dropped."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(RuntimeError):  # The loop is closed: the command has ended.
            loop.call_soon_threadsafe(stopped.set)

    # A thread, as an event loop cannot wait for a file or /dev/null; as a daemon it holds up no other end.
    threading.Thread(target=read, name="standard input", daemon=True).start()


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
