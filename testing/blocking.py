"""An event loop in a thread of its own, and the blocking forms of asynchronous classes.

A blocking class holds the asynchronous object and lists its members: `elect = blocking(Quorum.elect)` is the same
method with the same signature, which runs in the thread of the event loop while the caller waits. So there is one
implementation, and type checkers, `dir()` and `help()` see real methods.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, TypeVarTuple, Unpack, cast

T = TypeVar("T")
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
S = TypeVar("S")
InsideT = TypeVar("InsideT", covariant=True)


class LoopThread:
    """A thread with an event loop, from `start` to `stop`; callers wait for what they run in it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run a new event loop in a daemon thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"mockraft-{self._name}", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the loop and return its result. RuntimeError in the loop's own thread: it cannot wait."""
        if self._is_current:
            coroutine.close()
            raise RuntimeError("a function that answers requests cannot wait: it runs in the controller's own thread")
        return self._submit(coroutine).result()

    def soon(self, coroutine: Coroutine[object, object, T]) -> asyncio.Future[T]:
        """Run a coroutine in the loop; return a future of the caller's event loop."""
        return asyncio.wrap_future(self._submit(coroutine))

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the loop's thread and return the result; call directly where that is this thread."""
        if self._is_current:
            return function(*arguments)

        async def called() -> T:
            return function(*arguments)

        return self.run(called())

    def _submit(self, coroutine: Coroutine[object, object, T]) -> Future[T]:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(f"the {self._name} does not run: use it inside its `with` block")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    @property
    def _is_current(self) -> bool:
        return self._thread is threading.current_thread()

    def stop(self) -> None:
        """Stop the loop and wait until the thread has ended."""
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = self._thread = None


class InLoopThread(Generic[InsideT]):
    """The `with` block of an asynchronous context manager, which runs in a thread of its own.

    A `thread` that is given runs already and outlives the block.
    """

    def __init__(
        self, name: str, inside: AbstractAsyncContextManager[object], thread: LoopThread | None = None
    ) -> None:
        self._thread = thread or LoopThread(name)
        self._is_own_thread = thread is None
        self._context = inside
        self._inside = cast(InsideT, inside)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._inside!r}>"

    def __enter__(self) -> Self:
        if self._is_own_thread:
            self._thread.start()
        try:
            self._thread.run(self._context.__aenter__())
        except BaseException:
            self._stop_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._thread.run(self._context.__aexit__(None, None, None))
        finally:
            self._stop_thread()

    def _stop_thread(self) -> None:
        if self._is_own_thread:
            self._thread.stop()

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the event loop's thread and return the result; needed for everything but reading journals."""
        return self._thread.call(function, *arguments)


def blocking(
    method: Callable[Concatenate[S, P], Coroutine[object, object, T]],
) -> Callable[Concatenate[InLoopThread[S], P], T]:
    """Return the blocking form of a coroutine method."""

    @functools.wraps(method)
    def run(self: InLoopThread[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return self._thread.run(method(self._inside, *args, **kwargs))

    return run


def in_thread(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[InLoopThread[S], P], T]:
    """Return the form of a plain method that calls it in the event loop's thread."""

    @functools.wraps(method)
    def call(self: InLoopThread[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.call(functools.partial(method, self._inside, *args, **kwargs))

    return call


class ReadProperty(Generic[S, T]):
    """A property of the asynchronous object, read in the event loop's thread, or directly if `anywhere`."""

    def __init__(self, read: Callable[[S], T], *, anywhere: bool) -> None:
        self._property: Any = read
        self._anywhere = anywhere
        self.__doc__ = read.__doc__

    def __get__(self, instance: InLoopThread[S] | None, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value]  # as a property does on its class
        if self._anywhere:
            return cast(T, self._property.__get__(instance._inside))
        return instance.call(lambda: cast(T, self._property.__get__(instance._inside)))


def reads(read: Callable[[S], T]) -> ReadProperty[S, T]:
    """Return the form of a property that is read in the event loop's thread."""
    return ReadProperty(read, anywhere=False)


def constant(read: Callable[[S], T]) -> ReadProperty[S, T]:
    """Return the form of a property that may be read in any thread."""
    return ReadProperty(read, anywhere=True)
