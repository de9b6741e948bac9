"""Repeatable randomness: the same seed gives the same draws on every Python."""

from __future__ import annotations

_MASK = (1 << 64) - 1


class SeededRandom:
    """Draws from a seed (splitmix64). Each `stream` of a seed has draws of its own: one for each call."""

    __slots__ = ("_state",)

    def __init__(self, seed: int, stream: int = 0) -> None:
        self._state = _mixed(seed & _MASK) ^ _mixed(stream * 0x9E3779B97F4A7C15 + 1 & _MASK)

    def random(self) -> float:
        """Return a number from 0 (included) to 1 (excluded)."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _MASK
        return (_mixed(self._state) >> 11) / (1 << 53)

    def below(self, limit: int) -> int:
        """Return an integer from 0 (included) to `limit` (excluded)."""
        return int(self.random() * limit)


def _mixed(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31
