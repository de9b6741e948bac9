"""The rule by which an API's response repeats with its request: see `mockraft.server.repeats`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller


class RepeatRule(NamedTuple):
    """The dependencies of a response of `handle`, beside the request's bytes.

    `subject(body, controller)` returns what the other functions need of an answered request, None if its response must
    not be repeated. While `state(controller, subject, offset)` returns an equal tuple, `handle` would write no record
    and return the same response to the same request; `record(controller, subject, offset, now_ms)`, if any, has its
    other effects. `ignores_offset`: requests may differ in the metadata offset, which follows a broker's id and epoch
    at the body's begin. It is `offset` then, else 0.

    `unchanged(controller)`, if any, saves most of these calls. While the first value that it returns is equal, so is
    every state, and what `record` does with a subject and offset once more is to set the time of the subject, which the
    dictionary has. Without a dictionary `record` has to be called, and changes no state.
    """

    handle: Callable[..., Any]
    subject: Callable[[Any, Controller], Any]
    state: Callable[[Controller, Any, int], tuple[object, ...] | None]
    record: Callable[[Controller, Any, int, int], None] | None = None
    ignores_offset: bool = False
    unchanged: Callable[[Controller], tuple[object, dict[Any, int] | None]] | None = None
