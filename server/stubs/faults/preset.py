"""What presets are made of: stubs that are put into the rack and taken out again, and commands to the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mockraft.server.stubs.faults.kinds import REQUIRED, InForce, Kind, Parameter
from mockraft.server.stubs.stub import Stub

if TYPE_CHECKING:
    from mockraft.server.double import Double

Params = Mapping[str, Any]

EVERY_BROKER: Final = -1

BROKER: Final = Parameter("broker_id", "int", REQUIRED, "the broker's id", minimum=0)
BROKERS: Final = Parameter("broker_id", "int", EVERY_BROKER, "the broker's id; -1 is every broker", minimum=-1)


@dataclass(frozen=True, slots=True)
class Preset(Kind):
    """A kind of fault that is made of stubs and commands.

    `reaction` is what a real broker (Kafka 4.3.1) does, and `proof` the test that shows it, as `file::test` below
    tests/real_kafka/presets.
    """

    reaction: str = ""
    proof: str = ""

    def to_json(self) -> dict[str, Any]:
        """The kind as the page and the command line list it, with what a real broker does."""
        return {**Kind.to_json(self), "reaction": self.reaction}


def scope(params: Params) -> dict[str, Any]:
    """The match of requests of the broker that is meant, or of every one."""
    return {} if params["broker_id"] == EVERY_BROKER else {"broker_id": params["broker_id"]}


def fetch_scope(double: Double, params: Params) -> dict[str, Any]:
    """The same for what nodes of a quorum ask, too: those are not meant."""
    return scope(params) or {"broker_id": {"not": sorted(double.nodes())}}


def put(double: Double, *stubs: Stub) -> InForce:
    """Put stubs in the way, until they are taken away again."""
    rack = double.script.rack
    live = [rack.add(each, of_fault=True) for each in stubs]

    def undo() -> None:
        for each in live:
            # The rack may have been emptied meanwhile.
            with suppress(KeyError):
                rack.remove(each.id)

    return InForce(undo, lambda: sum(each.call_count for each in live))


def answer_waiting(double: Double) -> None:
    """Have fetches that wait for records be answered now, before a preset changes what they are told."""
    # Without an active controller nothing is written, and nobody waits.
    with suppress(RuntimeError):
        double.state.append([{"type": "NoOpRecord", "record": {}}])


def made_of(stubs: Callable[[Params], Iterable[Stub]]) -> Callable[[Double, Params], InForce]:
    """A preset that is stubs and nothing else."""
    return lambda double, params: put(double, *stubs(params))


def command(do: Callable[[Double, Params], object]) -> Callable[[Double, Params], Callable[[], None]]:
    """A preset that is a command: it happens when it is switched on, and is not taken back."""

    def on(double: Double, params: Params) -> Callable[[], None]:
        do(double, params)
        return lambda: None

    return on
