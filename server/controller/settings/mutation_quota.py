"""Limits on partition creation and deletion: the token buckets of KIP-599 (ControllerMutationQuotaManager).

A bucket fills at the quota's rate (`controller_mutation_rate`, partitions a second) up to the amount of
`controller.quota.window.num` windows. It may be overdrawn once; then requests wait until it is even again.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings.client_quotas import CLIENT_ID, USER
from mockraft.wire import error_codes

if TYPE_CHECKING:
    from mockraft.server.controller.image.settings import QuotaEntity

KEY: Final = "controller_mutation_rate"
IDLE_MS_MAX: Final = 3_600_000
"""Idle time after which a bucket is removed (ClientQuotaManager)."""

Quotas = Mapping["QuotaEntity", Mapping[str, float]]


class Tags(NamedTuple):
    """Owner of a bucket: a user, a client id, or both; "" is neither one of them."""

    user: str
    client_id: str


class Bucket:
    """Tokens, negative when overdrawn. Times are milliseconds, rates tokens a second."""

    __slots__ = ("drawn_ms", "tokens", "updated_ms")

    def __init__(self) -> None:
        self.tokens = 0.0
        self.updated_ms = 0
        self.drawn_ms = 0

    def refill(self, rate: float, tokens_max: float, now_ms: int) -> None:
        """Add the tokens since the last refill."""
        self.tokens = min(tokens_max, self.tokens + rate * ((now_ms - self.updated_ms) / 1000))
        self.updated_ms = now_ms

    def draw(self, tokens: float, tokens_max: float, now_ms: int) -> None:
        """Take tokens, after a refill."""
        self.tokens = min(tokens_max, self.tokens - tokens)
        self.drawn_ms = now_ms


class MutationQuota:
    """One request's access to its bucket; `throttle_time_ms` is returned to the client.

    A strict one refuses while the bucket is overdrawn, one that is not strict lets everything through. Without a
    bucket there is no limit.
    """

    def __init__(
        self, bucket: Bucket | None, rate: float, tokens_max: float, now_ms: int, *, is_strict: bool = True
    ) -> None:
        self.throttle_time_ms = 0
        self._bucket = bucket
        self._rate = rate
        self._tokens_max = tokens_max
        self._now_ms = now_ms
        self._is_strict = is_strict

    def draw(self, partitions: int) -> None:
        """Record partitions to create or delete. ApiError THROTTLING_QUOTA_EXCEEDED, with nothing recorded."""
        bucket = self._bucket
        if bucket is None:
            return
        bucket.refill(self._rate, self._tokens_max, self._now_ms)
        if self._is_strict and bucket.tokens < 0:
            self._throttle(bucket)
            raise ApiError(error_codes.THROTTLING_QUOTA_EXCEEDED)
        bucket.draw(partitions, self._tokens_max, self._now_ms)
        if not self._is_strict and bucket.tokens < 0:
            self._throttle(bucket)

    def _throttle(self, bucket: Bucket) -> None:
        self.throttle_time_ms = min(math.floor(-bucket.tokens / self._rate * 1000 + 0.5), (1 << 31) - 1)


NO_QUOTA: Final = MutationQuota(None, math.inf, math.inf, 0)


class MutationQuotas:
    """The buckets of one controller, the longest unused first; they are not in the log and start full."""

    def __init__(self, *, windows: int, window_seconds: int) -> None:
        self._seconds = windows * window_seconds
        self._buckets: OrderedDict[Tags, Bucket] = OrderedDict()

    def quota_for(
        self, quotas: Quotas, principal: str, client_id: str | None, now_ms: int, *, is_strict: bool
    ) -> MutationQuota:
        """Return access to the bucket of a client; the user is the principal's name, whatever its type."""
        if not quotas:
            return NO_QUOTA
        tags = _tags(quotas, principal.partition(":")[2], client_id or "")
        rate = _rate(quotas, tags)
        if rate is None:
            return NO_QUOTA
        self._forget_idle(now_ms)
        bucket = self._buckets.setdefault(tags, Bucket())
        self._buckets.move_to_end(tags)
        return MutationQuota(bucket, rate, rate * self._seconds, now_ms, is_strict=is_strict)

    def _forget_idle(self, now_ms: int) -> None:
        while self._buckets:
            tags, bucket = next(iter(self._buckets.items()))
            if now_ms - bucket.drawn_ms <= IDLE_MS_MAX:
                return
            del self._buckets[tags]


def _user(name: str | None) -> "QuotaEntity":
    return ((USER, name),)


def _client(client_id: str | None) -> "QuotaEntity":
    return ((CLIENT_ID, client_id),)


def _both(user: str | None, client_id: str | None) -> "QuotaEntity":
    return ((CLIENT_ID, client_id), (USER, user))


def _tags(quotas: Quotas, user: str, client_id: str) -> Tags:
    """Return the bucket of the strongest quota (DefaultQuotaCallback.quotaMetricTags)."""
    together, alone = Tags(user, client_id), Tags(user, "")
    for entity, tags in (
        (_both(user, client_id), together),
        (_both(user, None), together),
        (_user(user), alone),
        (_both(None, client_id), together),
        (_both(None, None), together),
        (_user(None), alone),
    ):
        if KEY in quotas.get(entity, {}):
            return tags
    return Tags("", client_id)


def _rate(quotas: Quotas, tags: Tags) -> float | None:
    """Return the quota of a bucket, None without one (DefaultQuotaCallback.quotaLimit)."""
    user, client_id = tags
    if user and client_id:
        entities = [_both(user, client_id), _both(user, None), _both(None, client_id), _both(None, None)]
    elif user:
        entities = [_user(user), _user(None)]
    else:
        entities = [_client(client_id), _client(None)] if client_id else []
    return next((quotas[each][KEY] for each in entities if KEY in quotas.get(each, {})), None)
