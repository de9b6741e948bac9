"""Names and ids that no other case, and no earlier run, has used."""

from __future__ import annotations

import random

from mockraft.wire import uuids

_IDS_OF_A_CASE = 100
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class RunIds:
    """The ids of one run, drawn from `rng`; each case takes a range of its own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.token = "c" + "".join(rng.choices(_LETTERS, k=6))
        self.first_id = rng.randrange(1_000, 20_000_000) * _IDS_OF_A_CASE


class Identities:
    """The ids of case `number` of a run.

    `token` is part of every name; `broker_ids` are those given out; `tokens` the ids of delegation tokens it received.
    """

    def __init__(self, run: RunIds, number: int) -> None:
        self._rng = run.rng
        self.token = f"{run.token}-{number}-"
        self.broker_ids: set[int] = set()
        self.tokens: set[str] = set()
        self._next_id = run.first_id + number * _IDS_OF_A_CASE

    def broker_id(self) -> int:
        """Return the next broker id; ids ascend."""
        self._next_id += 1
        self.broker_ids.add(self._next_id)
        return self._next_id

    def name(self, text: str) -> str:
        """Return a name with the token."""
        return self.token + text

    def uuid(self) -> str:
        """Return a random id that Kafka does not reserve."""
        return uuids.text_of(bytes([self._rng.randrange(1, 256)]) + self._rng.randbytes(15))
