"""Scenarios: a state with a name that stubs wait for and change, so that what was asked before decides the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mockraft.server.stubs.errors import StubError

STARTED: Final = "Started"
"""The state in which every scenario begins (WireMock's word)."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A stub's part in a scenario: it serves only in the state `requires` (None: in any), and then sets `then`."""

    name: str
    requires: str | None = None
    then: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise StubError(f"expected a name, got {self.name!r}", "name")
        for field in ("requires", "then"):
            state = getattr(self, field)
            if state is not None and not isinstance(state, str):
                raise StubError(f"expected a state's name, got {state!r}", field)

    def allows(self, state: str) -> bool:
        """Whether the stub serves in this state."""
        return self.requires is None or self.requires == state
