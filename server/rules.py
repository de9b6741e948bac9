"""Rules that a proposal words otherwise than Kafka 4.3.1 ships them, and which proposal has which."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Wording(NamedTuple):
    """One rule: the proposal, what its text says (quoted or in short), and where the decision is made."""

    proposal: str
    sentence: str
    decided_in: str


class Rule(Enum):
    """What holds in place of Kafka's own rule while it is in `ControllerConfig.rules`."""

    REGISTRATION_TELLS_CORDONED_DIRS = Wording(
        "kip-1066",
        "the broker will include the Uuids of cordoned log directories when it registers to the controller",
        "registration.register_broker",
    )


PROFILES: dict[str, frozenset[Rule]] = {
    name: frozenset(rule for rule in Rule if rule.value.proposal == name)
    for name in ("kip-18", "kip-113", "kip-858", "kip-1066")
}
"""The rules of each proposal that `--profile` knows."""
