"""Sequential behaviour of the objects: the state after an operation, or that its result is impossible.

States are hashable. An operation with the result UNKNOWN is possible in every state, and changes it as if it succeeded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Final

from .history import UNKNOWN, Operation

IMPOSSIBLE: Final = object()
"""No state: the operation cannot have this result here."""

ABSENT: Final = "absent"
EXISTS: Final = "exists"
OK: Final = "ok"
BLOCK_SIZE: Final = 1000


class Model(ABC):
    """One kind of object; `initial` is its first state."""

    initial: Hashable
    observations: frozenset[str] = frozenset()
    """Operations, or results of operations, that change nothing."""

    @abstractmethod
    def after(self, state: Hashable, operation: Operation) -> Hashable:
        """Return the state after the operation, IMPOSSIBLE if it cannot have its result in this state."""

    def relevant(self, history: Sequence[Operation]) -> list[Operation]:
        """Return the operations without those of an unknown outcome that no other one depends on."""
        return list(history)

    def observes(self, operation: Operation) -> bool:
        """Return True if the operation changes no state, whichever it is."""
        return not {operation.name, str(operation.result)}.isdisjoint(self.observations)


class TopicName(Model):
    """A topic's name: `create` sets its id if it is absent, `delete` removes it. The state is the id, or ABSENT."""

    initial = ABSENT
    observations = frozenset({EXISTS, ABSENT})

    def after(self, state: Hashable, operation: Operation) -> Hashable:
        if operation.name == "create":
            if operation.result == UNKNOWN:
                # Its id is known only once somebody deletes it.
                return UNKNOWN if state == ABSENT else state
            if operation.result == EXISTS:
                return IMPOSSIBLE if state == ABSENT else state
            return operation.result if state == ABSENT else IMPOSSIBLE
        if operation.result == ABSENT:
            return state if state == ABSENT else IMPOSSIBLE
        if operation.result == UNKNOWN or state in (operation.result, UNKNOWN):
            return ABSENT
        return IMPOSSIBLE


class ConfigList(Model):
    """A config: `set` replaces its list of values, `append` adds one, `read` returns them."""

    initial = ()
    observations = frozenset({"read"})

    def relevant(self, history: Sequence[Operation]) -> list[Operation]:
        """Return the operations without unknown ones whose value was never read: an order needs none of these."""
        read = {value for each in history if each.name == "read" and each.result != UNKNOWN for value in each.result}
        return [each for each in history if each.result != UNKNOWN or each.argument in read]

    def after(self, state: Hashable, operation: Operation) -> Hashable:
        assert isinstance(state, tuple)
        if operation.name == "read":
            return state if operation.result in (UNKNOWN, state) else IMPOSSIBLE
        if operation.result not in (UNKNOWN, OK):
            return IMPOSSIBLE
        return (operation.argument,) if operation.name == "set" else (*state, operation.argument)


class ProducerIds(Model):
    """The producer ids of a cluster: each `allocate` returns the first id of the next block.

    The state is the first id that is free; None before the first block that was seen.
    """

    initial = None

    def after(self, state: Hashable, operation: Operation) -> Hashable:
        if not isinstance(state, int):
            return state if operation.result == UNKNOWN else operation.result + BLOCK_SIZE
        return state + BLOCK_SIZE if operation.result in (UNKNOWN, state) else IMPOSSIBLE
