"""Logs found by a starting broker, and their recovery, row by row."""

from __future__ import annotations

import pytest
from mockraft.brokers.moves.recovery import Found, Recovered, Recovery, recover
from mockraft.serving.directory_ids import LOST, MIGRATING, UNASSIGNED

A, B, C = (name * 16 for name in (b"a", b"b", b"c"))
ELSEWHERE = (C, MIGRATING, UNASSIGNED, LOST)


@pytest.mark.parametrize("some_offline", [False, True])
@pytest.mark.parametrize("assigned", [A, *ELSEWHERE])
def test_both_logs_on_good_dirs_go_on_copying(assigned: bytes, some_offline: bool) -> None:
    assert recover(Found([A], B, assigned, some_offline)) == Recovered(Recovery.RESUME)


@pytest.mark.parametrize("some_offline", [False, True])
def test_where_the_controller_has_agreed_the_last_records_are_copied_and_then_it_is_swapped(some_offline: bool) -> None:
    assert recover(Found([A], B, B, some_offline)) == Recovered(Recovery.FINISH)


@pytest.mark.parametrize("some_offline", [False, True])
def test_a_future_log_alone_where_the_controller_has_it_is_promoted(some_offline: bool) -> None:
    assert recover(Found([], B, B, some_offline)) == Recovered(Recovery.PROMOTE)


@pytest.mark.parametrize("assigned", [A, *ELSEWHERE])
def test_only_a_future_log_and_no_bad_dir_is_promoted(assigned: bytes) -> None:
    assert recover(Found([], B, assigned, False)) == Recovered(Recovery.PROMOTE)


@pytest.mark.parametrize("assigned", [A, *ELSEWHERE])
def test_only_a_future_log_with_an_offline_dir_is_kept(assigned: bytes) -> None:
    assert recover(Found([], B, assigned, True)) == Recovered(Recovery.OFFLINE)


@pytest.mark.parametrize("some_offline", [False, True])
@pytest.mark.parametrize("current", [[], [A]])
def test_no_action_without_a_future_log(current: list[bytes], some_offline: bool) -> None:
    assert recover(Found(current, None, A, some_offline)) == Recovered(Recovery.NOTHING)


@pytest.mark.parametrize("future", [None, C])
@pytest.mark.parametrize("assigned", [A, B])
def test_of_two_logs_the_one_the_metadata_names_is_kept(assigned: bytes, future: bytes | None) -> None:
    assert recover(Found([A, B], future, assigned, False)) == Recovered(Recovery.KEEP_ONE, assigned)


@pytest.mark.parametrize("assigned", ELSEWHERE)
def test_of_two_logs_none_of_which_the_metadata_names_a_person_decides(assigned: bytes) -> None:
    assert recover(Found([A, B], None, assigned, False)) == Recovered(Recovery.REFUSE)
