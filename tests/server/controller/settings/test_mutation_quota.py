"""Token buckets of the controller mutation quota: overdrawn once, then refused until they are even (KIP-599)."""

from typing import Any

import pytest
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings.mutation_quota import IDLE_MS_MAX, KEY, MutationQuota, MutationQuotas
from mockraft.wire import error_codes

NOW_MS = 1_700_000_000_000


@pytest.fixture
def quotas() -> MutationQuotas:
    return MutationQuotas(windows=11, window_seconds=1)


def quota_of(quotas: MutationQuotas, rates: Any, now_ms: int = NOW_MS, *, is_strict: bool = True) -> MutationQuota:
    limits = {((("user", "alice"),)): {KEY: rates}} if isinstance(rates, float) else rates
    return quotas.quota_for(limits, "User:alice", "tool", now_ms, is_strict=is_strict)


def code(quota: MutationQuota, partitions: int) -> int:
    try:
        quota.draw(partitions)
    except ApiError as refusal:
        return refusal.error_code
    return error_codes.NONE


def test_a_full_bucket_may_be_overdrawn_once_and_fills_again(quotas: MutationQuotas) -> None:
    first = quota_of(quotas, 2.0)
    assert [code(first, 22), code(first, 4), code(first, 1)] == [0, 0, error_codes.THROTTLING_QUOTA_EXCEEDED]
    assert first.throttle_time_ms == 2000
    assert code(quota_of(quotas, 2.0, NOW_MS + 1999), 1) == error_codes.THROTTLING_QUOTA_EXCEEDED
    later = quota_of(quotas, 2.0, NOW_MS + 2000)
    assert (code(later, 1), later.throttle_time_ms) == (0, 0)
    assert code(later, 1) == error_codes.THROTTLING_QUOTA_EXCEEDED


def test_older_request_is_throttled_up_to_int32_but_never_refused(quotas: MutationQuotas) -> None:
    older = quota_of(quotas, 1.0, is_strict=False)
    for partitions, wait_ms in ((11, 0), (5, 5000), (1, 6000), (1 << 40, (1 << 31) - 1)):
        assert (code(older, partitions), older.throttle_time_ms) == (0, wait_ms)


def test_a_bucket_holds_no_more_than_its_windows(quotas: MutationQuotas) -> None:
    assert code(quota_of(quotas, 1.0), 0) == 0
    later = quota_of(quotas, 1.0, NOW_MS + IDLE_MS_MAX)
    assert [code(later, 12), code(later, 1)] == [0, error_codes.THROTTLING_QUOTA_EXCEEDED]
    assert later.throttle_time_ms == 1000


def test_idle_bucket_is_removed(quotas: MutationQuotas) -> None:
    quota_of(quotas, 0.001).draw(1_000_000)
    assert code(quota_of(quotas, 0.001, NOW_MS + IDLE_MS_MAX), 1) == error_codes.THROTTLING_QUOTA_EXCEEDED
    assert code(quota_of(quotas, 0.001, NOW_MS + IDLE_MS_MAX + 1), 1) == 0


def test_no_bucket_without_a_quota(quotas: MutationQuotas) -> None:
    for limits in ({}, {(("user", "bob"),): {KEY: 1.0}}, {(("user", "alice"),): {"producer_byte_rate": 1.0}}):
        quota = quota_of(quotas, limits)
        assert [code(quota, 1_000_000), code(quota, 1)] == [0, 0]
        assert quota.throttle_time_ms == 0


def test_deficit_of_a_bucket_survives_a_change_of_its_rate(quotas: MutationQuotas) -> None:
    quota_of(quotas, 1.0).draw(21)
    changed = quota_of(quotas, 5.0)
    assert code(changed, 1) == error_codes.THROTTLING_QUOTA_EXCEEDED
    assert changed.throttle_time_ms == 2000


@pytest.mark.parametrize(
    ("entity", "shared_by"),
    [
        ((("client-id", "tool"),), {"alice", "bob"}),
        ((("client-id", None),), {"alice", "bob"}),
        ((("user", None),), {"alice"}),
        ((("client-id", "tool"), ("user", "alice")), {"alice"}),
        ((("client-id", None), ("user", "alice")), {"alice"}),
        ((("client-id", "tool"), ("user", None)), {"alice"}),
        ((("client-id", None), ("user", None)), {"alice"}),
        ((("client-id", "other"),), set()),
        ((("client-id", "other"), ("user", "alice")), set()),
    ],
)
def test_a_quota_of_a_client_is_shared_by_users_and_that_of_a_user_is_not(
    quotas: MutationQuotas, entity: Any, shared_by: set[str]
) -> None:
    limits = {entity: {KEY: 1.0}}
    quotas.quota_for(limits, "User:alice", "tool", NOW_MS, is_strict=True).draw(100)
    refused = {
        user
        for user in ("alice", "bob")
        if code(quotas.quota_for(limits, f"User:{user}", "tool", NOW_MS, is_strict=True), 1)
    }
    assert refused == shared_by


def test_a_users_name_may_have_a_colon(quotas: MutationQuotas) -> None:
    limits: Any = {(("user", "a:b"),): {KEY: 1.0}}
    quota = quotas.quota_for(limits, "User:a:b", "tool", NOW_MS, is_strict=True)
    assert [code(quota, 12), code(quota, 1)] == [0, error_codes.THROTTLING_QUOTA_EXCEEDED]
