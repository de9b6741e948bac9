"""Kafka's limits of consumer groups, which a broker's properties change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError


class GroupLimits(NamedTuple):
    """Limits of every group; of members Kafka sets none by default."""

    session_min_ms: int = 6_000
    session_max_ms: int = 1_800_000
    members_max: int = 1_000

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> GroupLimits:
        """Return the limits of a broker's properties."""
        keys = ("group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.max.size")
        return cls(*(int(properties.get(key, default)) for key, default in zip(keys, cls(), strict=True)))

    def check_session(self, timeout_ms: int) -> None:
        """Check a member's session timeout. Raises ApiError."""
        if not self.session_min_ms <= timeout_ms <= self.session_max_ms:
            raise ApiError(error_codes.INVALID_SESSION_TIMEOUT)


DEFAULT_LIMITS: Final = GroupLimits()
