"""Scenarios: a named state that stubs require and change, so that earlier requests decide the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mockraft.server.stubs.errors import StubError

STARTED: Final = "Started"
"""State in which every scenario begins (WireMock's name)."""


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
        """Return True if the stub serves in this state."""
        return self.requires is None or self.requires == state
