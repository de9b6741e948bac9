"""The verdict of a replay: changes for clients, changes that releases are known to have, masked values."""

from mockraft.cli.spark.known_answers import known_answers
from mockraft.releases import release
from mockraft.spark_replay.regression.rules import Override, Rules
from mockraft.spark_replay.regression.verdict import (
    Group,
    KnownChanges,
    change_text,
    masked,
    notes_of,
    releases_of,
    words_of,
)
from mockraft.wire import api_keys

from ...rows import each_row

CREATE, QUOTAS, ENVELOPE = api_keys.CREATE_TOPICS, api_keys.ALTER_CLIENT_QUOTAS, api_keys.ENVELOPE
VERSIONS, CONFIGS = api_keys.API_VERSIONS, api_keys.INCREMENTAL_ALTER_CONFIGS
FIRST = {
    "session": "s",
    "number": 7,
    "request_ts_ns": 1_000,
    "client": "c",
    "client_port": 1,
    "server": "h",
    "server_port": 2,
    "correlation_id": 3,
    "request_frame_no": 4,
}
FINITE = "Quota consumer_byte_rate must be a finite number"
PAIR = release("4.3"), release("4.4")
TABLE = KnownChanges([PAIR], known_answers)


def group(api_key: int, path: str, kind: str, before: str | None, since: str | None, *texts: str) -> Group:
    return Group(api_key, path, kind, before, since, 1, FIRST, frozenset(map(words_of, texts)))


@each_row(
    ("found", "why"),
    {
        "api": (group(VERSIONS, "apiKeys[18].maxVersion", "changed", "4", "5"), "0 to 4 → 0 to 5 (KIP-1242)"),
        "other version": (group(VERSIONS, "apiKeys[18].maxVersion", "changed", "4", "6"), None),
        "new api": (group(VERSIONS, "apiKeys[94]", "extra", None, "{}"), "UnregisterController: — → 0 to 0"),
        "newer version": (group(VERSIONS, "errorCode", "changed", "35", "0"), "0 to 4 → 0 to 5"),
        "lost api": (group(VERSIONS, "apiKeys[94]", "missing", "{}", None), None),
        "feature": (group(VERSIONS, "supportedFeatures[share.version].maxVersion", "changed", "1", "2"), "0 to 2"),
        "level": (group(VERSIONS, "finalizedFeatures[share.version].maxVersionLevel", "changed", "1", "2"), None),
        "config": (group(CREATE, "topics[].configs[remote.copy.lag.ms]", "extra", None, "{}"), "default 0"),
        "other config": (group(CREATE, "topics[].configs[segment.ms]", "missing", "{}", None), None),
        "answer": (group(QUOTAS, "entries[].errorCode", "changed", "0", "42", FINITE), "infinite quota"),
        "other text": (group(QUOTAS, "entries[].errorCode", "changed", "0", "42", FINITE, "no"), None),
        "no text": (group(QUOTAS, "entries[].errorCode", "changed", "0", "42"), None),
        "other code": (group(QUOTAS, "entries[].errorCode", "changed", "0", "41", FINITE), None),
        "forwarded": (
            group(ENVELOPE, "AlterClientQuotas.entries[].errorCode", "changed", "0", "42", FINITE),
            "ClientQuotaControlManager",
        ),
    },
)
def test_only_a_change_of_the_tables_is_known(found: Group, why: str | None) -> None:
    known = TABLE.why(found)
    assert known is None if why is None else why in str(known)
    assert KnownChanges([]).why(found) is None


def test_the_releases_and_a_newer_level_of_the_target_are_seen_in_api_versions() -> None:
    groups = [
        group(VERSIONS, f"{part}Features[metadata.version].{name}", "changed", "30", "33")
        for part, name in (("supported", "maxVersion"), ("finalized", "maxVersionLevel"))
    ]
    assert releases_of(groups) == [PAIR]
    (note,) = notes_of(groups)
    assert "the target's metadata.version is 4.4-IV2, the captured one's 4.3-IV0" in note
    assert not notes_of(groups[:1])
    assert not releases_of(groups[1:])


def test_masked_values_are_counted_by_reason_and_own_rules_have_their_own() -> None:
    rules = Rules([Override("BrokerHeartbeat", "isFenced", "ignored", why="a busy machine")])
    fired = {"BrokerHeartbeat:isFenced": 1, "BrokerHeartbeat:errorCode": 2, "CreateTopics:throttleTimeMs": 3}
    assert [(row["class"], row["count"], str(row["why"])[:14]) for row in masked(fired, rules)] == [
        ("throttle", 3, "throttle time "),
        ("error code", 2, "follows from a"),
        ("ignored", 1, "a busy machine"),
    ]


@each_row(
    ("found", "text"),
    {
        "code": (group(CREATE, "topics[].errorCode", "changed", "0", "38"), "0 NONE → 38 INVALID_REPLICATION_FACTOR"),
        "absent": (group(CREATE, "topics[].configs[a]", "missing", '{"value": "x"}', None), "x → absent"),
        "null": (group(CREATE, "topics[].name", "changed", "null", '"\\n"'), "null → \\n"),
        "cut": (group(CREATE, "topics[].name", "changed", '"a…', "1"), '"a… → 1'),
    },
)
def test_a_change_is_one_line(found: Group, text: str) -> None:
    assert change_text(found.as_tree()) == text
