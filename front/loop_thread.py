"""An event loop in a thread of its own, for tests without asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs from `start` to `stop`; what is run or called in it is waited for by the thread that asks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and give its result. RuntimeError in the loop's own thread, which cannot wait."""
        assert self._loop is not None, "the loop does not run: use what it is of inside its `with` block"
        if self._is_current:
            coroutine.close()
            raise RuntimeError("what answers a request cannot wait: it runs in the thread of the controller itself")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def soon(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run a coroutine in the loop; its result is to be awaited in the event loop that asks."""
        assert self._loop is not None, "the loop does not run: use what it is of inside its `with` block"
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call in the loop's thread and give the result; at once where that is this thread."""
        if self._is_current:
            return function(*arguments)

        async def called() -> T:
            return function(*arguments)

        return self.run(called())

    @property
    def _is_current(self) -> bool:
        return self._thread is threading.current_thread()

    def stop(self) -> None:
        """Stop the loop and wait until the thread is gone."""
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None


class InLoopThread:
    """The `with` block of something with an `async with` block, which has a thread of its own as long as it lasts.

    A `thread` that is given runs already and goes on after the block.
    """

    def __init__(self, name: str, inside: AbstractAsyncContextManager[Any], thread: LoopThread | None = None) -> None:
        self._thread = thread or LoopThread(name)
        self._is_own_thread = thread is None
        self._inside = inside

    def __enter__(self) -> Self:
        if self._is_own_thread:
            self._thread.start()
        try:
            self._thread.run(self._inside.__aenter__())
        except BaseException:
            self._stop_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._thread.run(self._inside.__aexit__(None, None, None))
        finally:
            self._stop_thread()

    def _stop_thread(self) -> None:
        if self._is_own_thread:
            self._thread.stop()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call in its thread and give the result: whatever changes or reads more than journals."""
        return self._thread.call(function, *arguments)
