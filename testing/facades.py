"""Facades: what a test's own thread uses of an object in the event loop of another thread.

`Controller`, `Quorum` and `SimulatedBroker` are written once, asynchronous. `facade` makes the class with which other
threads use one of them: it has the same members, and each runs in the thread of the event loop. Where a member is a
coroutine, a blocking facade waits for its result, and an awaitable one returns a coroutine, so that a test's own event
loop goes on meanwhile. What a member returns of such objects (the brokers of a controller, its state and faults) is
given out as a facade, too.

An awaitable facade has the types of its class. Those of the blocking ones are generated, for type checkers and editors:
sync_types.pyi, by `python -m tools.sync_types`.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import re
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, TypeVarTuple, Unpack

from mockraft.kafka_api.journal import VerificationError
from mockraft.server.double import Double
from mockraft.server.state.state import State
from mockraft.testing.faults import ControllerFaults
from mockraft.testing.switched_on import SwitchedOn

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LoopThread:
    """A thread with an event loop, from `start` to `stop`; callers wait for what they run in it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._waited_for: dict[asyncio.Task[object] | None, BaseException | None] = {}
        """Tasks that callers wait for, each with what ended the loop meanwhile."""
        self._interrupted_by: BaseException | None = None

    def start(self) -> None:
        """Run a new event loop in a daemon thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run_loop, args=[self._loop], name=f"mockraft-{self._name}", daemon=True
        )
        self._thread.start()

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        is_over = False
        while not is_over:
            try:
                loop.run_forever()
                is_over = True
            except BaseException as error:  # KeyboardInterrupt in a function that answers a request
                if not self._waited_for:
                    self._interrupted_by = error
                for task in self._waited_for:
                    self._waited_for[task] = error
                    assert task is not None
                    task.cancel()

    def _interruption(self, by: BaseException) -> RuntimeError:
        """Return the error for callers after a function of a test has ended the loop."""
        failure = RuntimeError(f"{by!r} was raised in the thread of the {self._name}")
        failure.__cause__ = by
        return failure

    @property
    def is_running(self) -> bool:
        """True between `start` and `stop`."""
        return self._loop is not None

    def raise_interruption(self) -> None:
        """Raise RuntimeError if a function of a test has ended the loop when nobody waited."""
        if (by := self._interrupted_by) is not None:
            self._interrupted_by = None
            raise self._interruption(by)

    def run(self, coroutine: Coroutine[object, object, T], *, in_any_case: bool = False) -> T:
        """Run a coroutine in the loop and return its result. RuntimeError in the loop's own thread: it cannot wait.

        With `in_any_case` no interruption keeps it from its end.
        """
        if self._is_current:
            coroutine.close()
            raise RuntimeError("a function that answers requests cannot wait: it runs in the controller's own thread")
        return self._submit(coroutine, in_any_case=in_any_case).result()

    async def soon(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine in the loop and return its result; the caller's own event loop goes on meanwhile."""
        return await asyncio.wrap_future(self._submit(coroutine))

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts, in_any_case: bool = False) -> T:
        """Call in the loop's thread and return the result; call directly where that is this thread."""
        if self._is_current:
            return function(*arguments)

        async def called() -> T:
            return function(*arguments)

        return self.run(called(), in_any_case=in_any_case)

    def _submit(self, coroutine: Coroutine[object, object, T], *, in_any_case: bool = False) -> Future[T]:
        if self._loop is None:
            coroutine.close()
            raise RuntimeError(f"the {self._name} does not run: use it inside its `with` block")
        if not in_any_case:
            try:
                self.raise_interruption()
            except RuntimeError:
                coroutine.close()
                raise

        async def guarded() -> T:
            task: asyncio.Task[object] | None = asyncio.current_task()
            if not in_any_case:
                self._waited_for[task] = None
            try:
                return await coroutine
            except (KeyboardInterrupt, SystemExit) as error:  # they would end the loop
                raise self._interruption(error) from error
            except asyncio.CancelledError:
                if (by := self._waited_for.get(task)) is not None:
                    raise self._interruption(by) from by
                raise
            finally:
                self._waited_for.pop(task, None)

        return asyncio.run_coroutine_threadsafe(guarded(), self._loop)

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


class Facade:
    """An object that other threads use, as long as the `with` block lasts; `facade` makes the subclasses.

    `inside` is the object itself, for use through `call` only. A `thread` that is given runs already and outlives the
    block.
    """

    _name = ""
    _blocks = True

    def __init__(self, inside: Any, thread: LoopThread | None = None) -> None:
        self.inside = inside
        self._thread = thread or LoopThread(self._name)
        self._is_own_thread = thread is None
        if isinstance(inside, Double):
            inside.script.stubs.call = self._thread.call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inside!r}>"

    def __enter__(self) -> Self:
        if self._is_own_thread:
            self._thread.start()
        try:
            self._begin_or_end("enter")
        except BaseException:
            self._stop_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        try:
            self._begin_or_end("exit", kind, error, trace)
            self._thread.raise_interruption()
        except AssertionError as complaint:
            # The frames inside mockraft do not help the test's author.
            raise complaint.with_traceback(None) from None
        finally:
            self._stop_thread()

    def _begin_or_end(self, name: str, *arguments: object) -> None:
        waits, is_end = getattr(self.inside, f"__a{name}__", None), name == "exit"
        if waits is not None:
            self._thread.run(waits(*arguments), in_any_case=is_end)
        else:
            self._thread.call(getattr(self.inside, f"__{name}__"), *arguments, in_any_case=is_end)

    def _stop_thread(self) -> None:
        if self._is_own_thread:
            self._thread.stop()

    def call(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call in the event loop's thread and return the result; needed for everything but reading journals."""
        return self._thread.call(function, *arguments)

    if not TYPE_CHECKING:  # a type checker knows the members, and refuses others

        def __getattr__(self, name: str) -> object:
            if name == "inside" or name.startswith("_"):
                raise AttributeError(name)
            return self._read(name)

    def _read(self, name: str) -> object:
        """Return an attribute of the object; while the thread does not run, nobody else uses it."""
        if not self._thread.is_running:
            return self._outside(getattr(self.inside, name))
        return self._outside(self._thread.call(getattr, self.inside, name))

    def _outside(self, value: object) -> object:
        """Return a result as this thread may use it."""
        if isinstance(value, dict):
            shown = copy.copy(value)
            shown.update((key, self._outside(each)) for key, each in value.items())
            return shown
        made = _MADE.get((type(value), self._blocks))
        return value if made is None else made(value, self._thread)


_MADE: dict[tuple[type, bool], type[Facade]] = {}


def facade(cls: type, name: str, *, blocks: bool) -> Any:
    """Return the class with which other threads use objects of a class; `name` is that of the class.

    Of the members that the class has, it has methods and properties, with their signatures and docstrings.
    """
    members: dict[str, object] = {"__doc__": cls.__doc__, "_name": _words(cls.__name__), "_blocks": blocks}
    for each in dir(cls):
        member = inspect.getattr_static(cls, each)
        if each.startswith("_") or hasattr(Facade, each):
            continue
        if isinstance(member, property | functools.cached_property):
            members[each] = _property(each, member)
        elif inspect.isfunction(member):
            members[each] = _method(member, blocks=blocks)
    made = _MADE[cls, blocks] = type(name, (Facade,), members)
    return made


def _words(name: str) -> str:
    return re.sub("(?<!^)(?=[A-Z])", " ", name).lower()


def _property(name: str, member: Any) -> property:
    def read(self: Facade) -> object:
        return self._read(name)

    def write(self: Facade, value: object) -> None:
        self.call(setattr, self.inside, name, value)

    return property(read, write if getattr(member, "fset", None) else None, doc=member.__doc__)


def _method(method: Callable[..., Any], *, blocks: bool) -> Callable[..., object]:
    if inspect.isgeneratorfunction(inspect.unwrap(method)):
        # A context manager runs in the caller's thread, by other members of the facade.
        return method
    name, waits = method.__name__, inspect.iscoroutinefunction(method)

    @functools.wraps(method)
    async def wait(self: Facade, /, *args: object, **kwargs: object) -> object:
        __tracebackhide__ = True
        try:
            return self._outside(await self._thread.soon(getattr(self.inside, name)(*args, **kwargs)))
        except VerificationError as error:
            raise error.with_traceback(None) from None

    @functools.wraps(method)
    def run(self: Facade, /, *args: object, **kwargs: object) -> object:
        __tracebackhide__ = True
        try:
            if waits:
                return self._outside(self._thread.run(getattr(self.inside, name)(*args, **kwargs)))
            return self._outside(self._thread.call(lambda: getattr(self.inside, name)(*args, **kwargs)))
        except VerificationError as error:
            # The frames inside mockraft do not help the test's author.
            raise error.with_traceback(None) from None

    return wait if waits and not blocks else run


for _cls in (State, ControllerFaults, SwitchedOn):
    for _blocks in (True, False):
        facade(_cls, f"{_cls.__name__}Facade", blocks=_blocks)
del _cls, _blocks
