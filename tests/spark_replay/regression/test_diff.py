"""Comparing responses: pairs, kinds of differences, and a rule for every field, which a file may override."""

import re
from pathlib import Path
from typing import Any

import pytest
from mockraft.files.trees import GivenFileError
from mockraft.spark_replay.regression.classes import CLASSES, COMPARED, IGNORED, LOG_OFFSET, MASKED
from mockraft.spark_replay.regression.diff import ABSENT, CHANGED, EXTRA, MISSING, ORDER, VOLATILE_OK, Difference, diff
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.rules import Override, RuleError, Rules, read_rules, rules_of, write_rules
from mockraft.wire import api_keys, messages
from mockraft.wire.json_form import Json

from ...rows import each_row

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


@each_row(("captured", "live"), [(-1, 17), (17, -1), (0, 5)])
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
        "topics": [{"name": "t", "errorMessage": "no", "numPartitions": 1}, {"name": "u", "errorCode": 0}],
    }
    topics = [{"name": "t", "errorMessage": None, "configs": []}, {"name": "u", "errorCode": 41}]
    live = {"throttleTimeMs": 7, "topics": topics}
    assert everything(captured, live, CREATE_TOPICS) == [
        Difference("throttleTimeMs", VOLATILE_OK, 0, 7, "CreateTopics:throttleTimeMs"),
        Difference("topics[t].errorMessage", VOLATILE_OK, "no", None, "CreateTopics:topics[].errorMessage"),
        Difference("topics[t].numPartitions", MISSING, 1, ABSENT),
        Difference("topics[t].configs", EXTRA, ABSENT, []),
        Difference("topics[u].errorCode", CHANGED, 0, 41),
    ]


def test_fields_beside_another_error_code_follow_from_it() -> None:
    created = {"topics": [{"name": "t", "errorCode": 0, "numPartitions": 1}, {"name": "u", "numPartitions": 1}]}
    refused = {"topics": [{"name": "t", "errorCode": 38, "numPartitions": -1}, {"name": "u", "numPartitions": 2}]}
    assert everything(created, refused, CREATE_TOPICS) == [
        Difference("topics[t].errorCode", CHANGED, 0, 38),
        Difference("topics[t].numPartitions", VOLATILE_OK, 1, -1, "CreateTopics:topics[].errorCode"),
        Difference("topics[u].numPartitions", CHANGED, 1, 2),
    ]


@each_row(("captured", "live", "counts"), [(74, 0, False), (6, 0, False), (0, 74, True), (74, 6, True), (1, 0, True)])
def test_an_election_of_the_capture_alone_is_no_difference(captured: int, live: int, counts: bool) -> None:
    sides = [{"responses": [{"partitions": [{"partitionIndex": 0, "errorCode": code}]}]} for code in (captured, live)]
    found = differences(sides[0], sides[1], FETCH)
    assert [each.path for each in found] == ["responses[0].partitions[0].errorCode"] * counts


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


ALL = list(Rules())


def test_every_field_of_every_response_has_one_rule() -> None:
    assert len(ALL) > 700
    assert len({rule.name for rule in ALL}) == len(ALL)
    assert {rule.kind for rule in ALL} <= CLASSES
    assert {rule.api for rule in ALL} == set(api_keys.NAMES.values())


def test_only_times_throttling_and_texts_are_masked() -> None:
    names = {re.split(r"[.\[]", rule.path)[-1] for rule in ALL if rule.kind in MASKED}
    assert {name for name in names if not name.endswith(("Timestamp", "TimestampMs", "TimeMs"))} == {"errorMessage"}


def test_assigned_ids_are_never_compared_directly() -> None:
    handed_out = re.compile(r"(brokerEpoch|topicIds?|clusterId|producerIdStart|hmac|tokenId|[dD]irectoryId)(\[\])?$")
    assert [rule.name for rule in ALL if handed_out.search(rule.path) and rule.kind == COMPARED] == []
    kinds = {rule.name: rule.kind for rule in ALL}
    assert kinds["Fetch:responses[].partitions[].highWatermark"] == LOG_OFFSET
    assert kinds["BrokerHeartbeat:isFenced"] == COMPARED
    assert kinds["AlterPartition:topics[].partitions[].leaderEpoch"] == COMPARED


def test_generated_file_equals_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text("\n".join(write_rules(rule for rule in ALL if rule.kind != COMPARED)))
    again = read_rules(path)
    assert [rule[:4] for rule in again] == [rule[:4] for rule in ALL]
    assert len(again.overrides) > 100


def test_an_override_counts_for_its_versions_and_the_last_one_wins() -> None:
    rules = rules_of(
        {
            "rule": [
                {"api": "*", "path": "*errorCode", "class": "ignored"},
                {"api": "BrokerHeartbeat", "path": "errorCode", "class": "compared"},
                {"api": "BrokerHeartbeat", "path": "isFenced", "class": "ignored", "versions": "1+", "why": "late"},
            ]
        }
    )
    for version, excused in ((0, False), (1, True)):
        node = rules.response(api_keys.BROKER_HEARTBEAT, version)
        fenced, code = (
            list(diff(before, live, node, Renaming()))
            for before, live in (({"isFenced": True}, {"isFenced": False}), ({"errorCode": 0}, {"errorCode": 1}))
        )
        assert [each.kind == VOLATILE_OK for each in (*fenced, *code)] == [excused, False]
    kinds = {rule.name: rule.kind for rule in rules}
    assert kinds["CreateTopics:topics[].errorCode"] == IGNORED
    assert kinds["BrokerHeartbeat:errorCode"] == COMPARED


@each_row(
    ("entry", "complaint"),
    [
        ({"path": "a", "class": "time"}, "rule 1: api is missing"),
        ({"api": "Fecth", "path": "a", "class": "time"}, "there is no API 'Fecth'; did you mean Fetch?"),
        ({"api": "BrokerHeartbeat", "path": "isfenced", "class": "time"}, "no field of BrokerHeartbeat's response is"),
        ({"api": "BrokerHeartbeat", "path": "isFenced", "class": "tme"}, "no class 'tme'; did you mean time?"),
        ({"api": "*", "path": "nowhere", "class": "time"}, "no field of any response is 'nowhere'"),
        (
            {"api": "*", "path": "errorCode", "class": "time", "versions": "x"},
            "versions must be like 1, 0-2 or 3+, not 'x'",
        ),
        ({"api": "*", "path": "errorCode", "kind": "time"}, "has no key kind; its keys are api, class, path"),
        ({"api": 3, "path": "errorCode", "class": "time"}, "api must be a string, not 3"),
    ],
)
def test_invalid_override_error_suggests_valid_value(entry: object, complaint: str) -> None:
    with pytest.raises(RuleError, match=re.escape(complaint)):
        rules_of({"rule": [entry]})


def test_rejects_invalid_rules_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    for text, complaint in (("[", "not TOML"), ("[rules]\n", "not rules"), ("[rule]\n", r"\[\[rule\]\], not \[rule\]")):
        path.write_text(text)
        with pytest.raises((RuleError, GivenFileError), match=complaint):
            read_rules(path)


def test_every_version_of_every_message_compiles() -> None:
    rules = Rules([Override("*", "throttleTimeMs", COMPARED)])
    for key in api_keys.NAMES:
        for message, which in ((messages.request(key), rules.request), (messages.response(key), rules.response)):
            for version in range(message.min_version, message.max_version + 1):
                assert which(key, version).rule.api == api_keys.name(key)
