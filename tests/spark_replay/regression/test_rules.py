"""Every field of every response has a rule, and a file may override it."""

import re
from pathlib import Path

import pytest
from mockraft.spark_replay.regression.classes import CLASSES, COMPARED, IGNORED, LOG_OFFSET, MASKED
from mockraft.spark_replay.regression.diff import VOLATILE_OK, diff
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.rules import Override, RuleError, Rules
from mockraft.spark_replay.regression.rules_file import read_rules, rules_of, write_rules
from mockraft.wire import api_keys, messages

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
    path.write_text("\n".join(write_rules(Rules(), only_special=True)))
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
        found = list(diff({"isFenced": True, "errorCode": 0}, {"isFenced": False, "errorCode": 1}, node, Renaming()))
        assert [each.kind == VOLATILE_OK for each in found] == [excused, False]
    kinds = {rule.name: rule.kind for rule in rules}
    assert kinds["CreateTopics:topics[].errorCode"] == IGNORED
    assert kinds["BrokerHeartbeat:errorCode"] == COMPARED


@pytest.mark.parametrize(
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
    for text, complaint in (
        ("[", "not valid TOML"),
        ("[rules]\n", "not rules"),
        ("[rule]\n", r"\[\[rule\]\], not \[rule\]"),
    ):
        path.write_text(text)
        with pytest.raises(RuleError, match=complaint):
            read_rules(path)


def test_every_version_of_every_message_compiles() -> None:
    rules = Rules([Override("*", "throttleTimeMs", COMPARED)])
    for key in api_keys.NAMES:
        for message, which in ((messages.request(key), rules.request), (messages.response(key), rules.response)):
            for version in range(message.min_version, message.max_version + 1):
                assert which(key, version).rule.api == api_keys.name(key)
