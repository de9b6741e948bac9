"""Answers side by side: what is paired, what is a difference, what is not looked at."""

from typing import Any

import pytest
from mockraft.spark_replay.bindings import Bindings
from mockraft.spark_replay.compare import ABSENT, Difference, compare
from mockraft.wire import api_keys

CREATE_TOPICS, REGISTRATION, FETCH = api_keys.CREATE_TOPICS, api_keys.BROKER_REGISTRATION, api_keys.FETCH


def differences(captured: Any, live: Any, api_key: int = CREATE_TOPICS, bindings: Bindings | None = None) -> Any:
    return compare(captured, live, api_key, Bindings() if bindings is None else bindings)


def test_ids_and_epochs_are_paired_and_put_into_later_requests() -> None:
    bindings = Bindings()
    topics = [[{"name": "t", "topicId": f"{who}-topic", "errorCode": 0}] for who in ("captured", "live")]
    assert differences({"topics": topics[0]}, {"topics": topics[1]}, bindings=bindings) == []
    assert differences({"brokerEpoch": 17}, {"brokerEpoch": 230}, REGISTRATION, bindings) == []
    request = {
        "brokerEpoch": 17,
        "topics": [{"topicId": "captured-topic", "partitions": [17]}],
        "topicIds": ["captured-topic"],
    }
    assert bindings.bind(request, CREATE_TOPICS) == {
        "brokerEpoch": 230,
        "topics": [{"topicId": "live-topic", "partitions": [17]}],
        "topicIds": ["live-topic"],
    }


def test_a_pair_that_does_not_hold_is_a_difference_with_the_value_that_was_due() -> None:
    bindings = Bindings()
    assert differences({"brokerEpoch": 17}, {"brokerEpoch": 230}, REGISTRATION, bindings) == []
    assert differences({"brokerEpoch": 17}, {"brokerEpoch": 231}, REGISTRATION, bindings) == [
        Difference("brokerEpoch", 230, 231)
    ]
    # Two captured epochs cannot be one live epoch either.
    assert differences({"brokerEpoch": 18}, {"brokerEpoch": 230}, REGISTRATION, bindings) != []


@pytest.mark.parametrize(("captured", "live"), [(-1, 17), (17, -1), (0, 5)])
def test_values_that_mean_something_are_never_paired(captured: int, live: int) -> None:
    bindings = Bindings()
    assert differences({"brokerEpoch": captured}, {"brokerEpoch": live}, REGISTRATION, bindings) == [
        Difference("brokerEpoch", captured, live)
    ]
    assert bindings.pairs == {}


def test_several_quorum_epochs_may_be_one_where_no_election_happens_again() -> None:
    bindings = Bindings()
    for captured in (1, 2, 1):
        trees = [{"currentLeader": {"leaderId": 3000, "leaderEpoch": epoch}} for epoch in (captured, 4)]
        assert differences(*trees, FETCH, bindings) == []
    trees = [{"currentLeader": {"leaderId": 3000, "leaderEpoch": epoch}} for epoch in (1, 5)]
    assert differences(*trees, FETCH, bindings) == [Difference("currentLeader.leaderEpoch", 4, 5)]


def test_times_texts_and_offsets_are_not_compared_but_codes_and_what_is_missing_are() -> None:
    captured = {"throttleTimeMs": 0, "errorMessage": "no", "highWatermark": 9, "errorCode": 0, "leader": 1}
    live = {"throttleTimeMs": 7, "errorMessage": None, "highWatermark": 800, "errorCode": 41, "isr": [1]}
    assert differences(captured, live) == [
        Difference("errorCode", 0, 41),
        Difference("leader", 1, ABSENT),
        Difference("isr", ABSENT, [1]),
    ]


def test_elements_that_have_a_name_are_compared_by_it_in_any_order() -> None:
    captured = {"features": [{"name": "a", "max": 1}, {"name": "b", "max": 2}]}
    assert differences(captured, {"features": captured["features"][::-1]}) == []
    changed = {"features": [{"name": "b", "max": 3}, {"name": "c", "max": 9}]}
    assert differences(captured, changed) == [
        Difference("features[a]", {"name": "a", "max": 1}, ABSENT),
        Difference("features[b].max", 2, 3),
        Difference("features[c]", ABSENT, {"name": "c", "max": 9}),
    ]


def test_arrays_of_plain_values_have_an_order() -> None:
    assert differences({"isr": [1, 2]}, {"isr": [2, 1]}) == [Difference("isr[0]", 1, 2), Difference("isr[1]", 2, 1)]
    assert differences({"isr": [1, 2]}, {"isr": [1]}) == [Difference("isr[1]", 2, ABSENT)]
