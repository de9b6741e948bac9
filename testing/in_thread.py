"""State and stubs of a running double, for use from the test's own thread.

Each public method of the base class runs in the thread of the event loop. They are subclasses, so that type checkers,
`isinstance`, `dir()` and `help()` see the real methods.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Concatenate, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack

from mockraft.server.running import RunningController
from mockraft.server.state.state import State
from mockraft.server.stubs.stub import Stub
from mockraft.server.stubs.stub_list import StubList

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = ParamSpec("P")


class Call(Protocol):
    """A function that calls another in the thread of the event loop."""

    def __call__(self, function: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        """Call it and return its result."""


class ThreadedState(State):
    """`State` of a double; each method runs in the thread of its event loop."""

    def __init__(self, nodes: Callable[[], Mapping[int, RunningController]], call: Call) -> None:
        super().__init__(nodes)
        self._call = call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of nodes {', '.join(map(str, self._nodes()))}>"


class LiveStub(Stub):
    """A stub in a running double. A method that returns a changed stub replaces it there and returns this object."""

    def __init__(self, live: Stub, stubs: StubList, call: Call) -> None:
        self._live = live
        self._stubs = stubs
        self._call = call

    def _replace(self, changed: Stub) -> None:
        if changed.id == self._live.id:
            self._live = self._stubs.replace(changed.id, changed)
        else:
            before, self._live = self._live, self._stubs.add(changed)
            self._stubs.remove(before)


def _methods(cls: type) -> list[tuple[str, Callable[..., object]]]:
    """Return the public methods that a class defines."""
    return [(name, each) for name, each in vars(cls).items() if inspect.isfunction(each) and not name.startswith("_")]


def _of_state(method: Callable[Concatenate[State, P], T]) -> Callable[Concatenate[ThreadedState, P], T]:
    @functools.wraps(method)
    def call(self: ThreadedState, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._call(functools.partial(method, self, *args, **kwargs))

    return call


def _of_stub(method: Callable[Concatenate[Stub, P], object]) -> Callable[Concatenate[LiveStub, P], object]:
    @functools.wraps(method)
    def call(self: LiveStub, /, *args: P.args, **kwargs: P.kwargs) -> object:
        result = method(self._live, *args, **kwargs)
        if not isinstance(result, Stub):
            return result
        self._call(self._replace, result)
        return self

    return call


for _name, _method in _methods(State):
    setattr(ThreadedState, _name, _of_state(_method))
for _name, _method in _methods(Stub):
    setattr(LiveStub, _name, _of_stub(_method))
for _name in (*(each.name for each in fields(Stub)), "called", "is_spent"):
    setattr(LiveStub, _name, property(attrgetter(f"_live.{_name}"), doc=inspect.getdoc(getattr(Stub, _name, None))))
