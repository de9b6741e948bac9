"""Building blocks of presets: stubs that are added and removed, and commands to the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mockraft.server.stubs.faults.fault import REQUIRED, InForce, Kind, Parameter, Params
from mockraft.server.stubs.stub import Stub

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.target import FaultTarget
    from mockraft.wire.json_form import Json, Tree

EVERY_BROKER: Final = -1

BROKER: Final = Parameter("broker_id", "int", REQUIRED, "the broker's id", minimum=0)
BROKERS: Final = Parameter("broker_id", "int", EVERY_BROKER, "the broker's id; -1 is every broker", minimum=-1)


@dataclass(frozen=True, slots=True)
class Preset(Kind):
    """A kind of fault that is made of stubs and commands.

    `reaction` is what a real broker does, and `proof` the test that shows it, as `file::test` below
    tests/real_kafka/presets.
    """

    reaction: str = ""
    proof: str = ""

    def to_json(self) -> Tree:
        """Return the kind as the live page and the command line list it, with a real broker's reaction."""
        return {**Kind.to_json(self), "reaction": self.reaction}


def scope(params: Params) -> int | None:
    """Return the condition on the sender: the given broker, or None for every broker."""
    broker_id = params.integer("broker_id")
    return None if broker_id == EVERY_BROKER else broker_id


def fetch_scope(double: FaultTarget, params: Params) -> Json:
    """Return the same condition for requests that nodes of a quorum send too, without theirs."""
    broker_id = scope(params)
    return {"not": sorted(double.nodes())} if broker_id is None else broker_id


def put(double: FaultTarget, *stubs: Stub) -> InForce:
    """Add stubs until they are removed again."""
    stub_list = double.script.stubs
    live = [stub_list.add(each, of_fault=True) for each in stubs]

    def undo() -> None:
        for each in live:
            # The list may have been emptied meanwhile.
            with suppress(KeyError):
                stub_list.remove(each.id)

    return InForce(undo, lambda: sum(each.call_count for each in live))


def answer_waiting(double: FaultTarget) -> None:
    """Answer fetches that wait for records now, before a preset changes their answer."""
    # Without an active controller nothing is written, and nobody waits.
    with suppress(RuntimeError):
        double.state.append([{"type": "NoOpRecord", "record": {}}])


def made_of(stubs: Callable[[Params], Iterable[Stub]]) -> Callable[[FaultTarget, Params], InForce]:
    """Return a preset that consists of stubs."""
    return lambda double, params: put(double, *stubs(params))


def command(do: Callable[[FaultTarget, Params], object]) -> Callable[[FaultTarget, Params], Callable[[], None]]:
    """Return a preset that is a command: it runs when it is switched on, and is not taken back."""

    def on(double: FaultTarget, params: Params) -> Callable[[], None]:
        do(double, params)
        return lambda: None

    return on
