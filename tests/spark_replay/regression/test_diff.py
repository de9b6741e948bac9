"""Comparing responses: pairs, kinds of differences, and excused differences."""

from typing import Any

import pytest
from mockraft.spark_replay.regression.diff import ABSENT, CHANGED, EXTRA, MISSING, ORDER, VOLATILE_OK, Difference, diff
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.rules import Rules
from mockraft.wire import api_keys, messages
from mockraft.wire.json_form import Json

CREATE_TOPICS, REGISTRATION, FETCH = api_keys.CREATE_TOPICS, api_keys.BROKER_REGISTRATION, api_keys.FETCH
RULES = Rules()


def differences(captured: Any, live: Any, api_key: int = CREATE_TOPICS, renaming: Renaming | None = None) -> Any:
    version = messages.response(api_key).max_version
    found = diff(captured, live, RULES.response(api_key, version), Renaming() if renaming is None else renaming)
    return [each for each in found if each.kind != VOLATILE_OK]


def everything(captured: Any, live: Any, api_key: int) -> list[Difference]:
    """The excused ones too."""
    return list(diff(captured, live, RULES.response(api_key, messages.response(api_key).max_version), Renaming()))


def test_ids_and_epochs_are_paired_and_put_into_later_requests() -> None:
    renaming = Renaming()
    topics = [[{"name": "t", "topicId": f"{who}-topic", "errorCode": 0}] for who in ("captured", "live")]
    assert differences({"topics": topics[0]}, {"topics": topics[1]}, renaming=renaming) == []
    assert differences({"brokerEpoch": 17}, {"brokerEpoch": 230}, REGISTRATION, renaming) == []
    request: Json = {"brokerId": 1, "brokerEpoch": 17, "topics": [{"topicId": "captured-topic", "partitions": [17]}]}
    assert renaming.bind(request, RULES.request(api_keys.ALTER_PARTITION, 3)) == {
        "brokerId": 1,
        "brokerEpoch": 230,
        "topics": [{"topicId": "live-topic", "partitions": [17]}],
    }
    ids: Json = {"topics": [{"name": None, "topicId": "captured-topic"}]}
    bound = renaming.bind(ids, RULES.request(api_keys.DELETE_TOPICS, 6))
    assert bound == {"topics": [{"name": None, "topicId": "live-topic"}]}


def test_broken_pair_is_a_difference_with_expected_value() -> None:
    renaming = Renaming()
    assert differences({"brokerEpoch": 17}, {"brokerEpoch": 230}, REGISTRATION, renaming) == []
    (found,) = differences({"brokerEpoch": 17}, {"brokerEpoch": 231}, REGISTRATION, renaming)
    assert found == Difference("brokerEpoch", CHANGED, 230, 231, "BrokerRegistration:brokerEpoch")
    # Two captured epochs cannot be one live epoch either.
    assert differences({"brokerEpoch": 18}, {"brokerEpoch": 230}, REGISTRATION, renaming) != []


@pytest.mark.parametrize(("captured", "live"), [(-1, 17), (17, -1), (0, 5)])
def test_reserved_values_are_never_paired(captured: int, live: int) -> None:
    renaming = Renaming()
    (found,) = differences({"brokerEpoch": captured}, {"brokerEpoch": live}, REGISTRATION, renaming)
    assert found[:4] == ("brokerEpoch", CHANGED, captured, live)
    assert renaming.pairs == {}


def fetched(epoch: int, offset: int = 5) -> dict[str, Any]:
    partition = {"partitionIndex": 0, "highWatermark": offset, "currentLeader": {"leaderId": 1, "leaderEpoch": epoch}}
    return {"responses": [{"partitions": [partition]}]}


def test_several_quorum_epochs_may_be_one_where_no_election_happens_again() -> None:
    renaming = Renaming()
    for captured in (1, 2, 1):
        assert differences(fetched(captured), fetched(4), FETCH, renaming) == []
    (found,) = differences(fetched(1), fetched(5), FETCH, renaming)
    assert found[:4] == ("responses[0].partitions[0].currentLeader.leaderEpoch", CHANGED, 4, 5)


def test_compares_only_presence_of_log_offsets() -> None:
    assert differences(fetched(1, 5), fetched(1, 80), FETCH) == []
    (found,) = differences(fetched(1, 5), fetched(1, -1), FETCH)
    assert found[1:] == (CHANGED, 5, -1, "Fetch:responses[].partitions[].highWatermark")


def test_times_and_texts_are_ignored_but_codes_and_missing_fields_are_not() -> None:
    captured = {
        "throttleTimeMs": 0,
        "topics": [{"name": "t", "errorMessage": "no", "errorCode": 0, "numPartitions": 1}],
    }
    live = {"throttleTimeMs": 7, "topics": [{"name": "t", "errorMessage": None, "errorCode": 41, "configs": []}]}
    assert everything(captured, live, CREATE_TOPICS) == [
        Difference("throttleTimeMs", VOLATILE_OK, 0, 7, "CreateTopics:throttleTimeMs"),
        Difference("topics[t].errorMessage", VOLATILE_OK, "no", None, "CreateTopics:topics[].errorMessage"),
        Difference("topics[t].errorCode", CHANGED, 0, 41),
        Difference("topics[t].numPartitions", MISSING, 1, ABSENT),
        Difference("topics[t].configs", EXTRA, ABSENT, []),
    ]


def test_named_elements_are_compared_in_any_order() -> None:
    captured = {"supportedFeatures": [{"name": "a", "maxVersion": 1}, {"name": "b", "maxVersion": 2}]}
    turned = {"supportedFeatures": captured["supportedFeatures"][::-1]}
    (found,) = everything(captured, turned, api_keys.API_VERSIONS)
    assert found[:4] == ("supportedFeatures", VOLATILE_OK, ["a", "b"], ["b", "a"])
    changed = {"supportedFeatures": [{"name": "b", "maxVersion": 3}, {"name": "c", "maxVersion": 9}]}
    assert differences(captured, changed, api_keys.API_VERSIONS) == [
        Difference("supportedFeatures[a]", MISSING, {"name": "a", "maxVersion": 1}, ABSENT),
        Difference("supportedFeatures[b].maxVersion", CHANGED, 2, 3),
        Difference("supportedFeatures[c]", EXTRA, ABSENT, {"name": "c", "maxVersion": 9}),
    ]


def described(name: str, values: list[int]) -> dict[str, Any]:
    return {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, name: values}]}]}


def test_arrays_of_values_are_ordered_and_a_moved_value_is_one_difference() -> None:
    lists = [described("replicas", values) for values in ([1, 2], [2, 1], [1])]
    key = api_keys.LIST_PARTITION_REASSIGNMENTS
    path = "topics[t].partitions[0].replicas"
    assert differences(lists[0], lists[1], key) == [Difference(path, ORDER, [1, 2], [2, 1])]
    assert differences(lists[0], lists[2], key) == [Difference(f"{path}[1]", MISSING, 2, ABSENT)]
