"""The same requests about topics to Kafka's controller and to ours: the same answers and records."""

from typing import Any

import pytest
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

from ...topics import topic
from .conftest import Case, Outcome, Side

pytestmark = pytest.mark.real_kafka

UNHEARD_OF_ID = bytes(range(16))


def create(
    name: str,
    *topics: CreatableTopic,
    version: int = 7,
    validate_only: bool = False,
    rng: bool = True,
    timeout_ms: int = 10_000,
) -> Case:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    return Case(f"create {name}", lambda _: request, version, rng)


def delete(name: str, names: Any = (), ids: Any = (), version: int = 6) -> Case:
    """Topic names, and ids given as the names of the topics that have them or as they are."""

    def request(side: Any) -> DeleteTopicsRequest:
        if version < 6:
            return DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)
        by_name = [DeleteTopicState(name=each) for each in names]
        by_id = [DeleteTopicState(name=None, topic_id=side.topic_ids.get(each, each)) for each in ids]
        return DeleteTopicsRequest(topics=by_name + by_id, timeout_ms=10_000)

    return Case(f"delete {name}", request, version)


CASES = [
    create("nothing"),
    create("defaults", topic("defaults")),
    create("two partitions, two replicas", topic("two", 2, 2)),
    create("as many replicas as usable brokers", topic("wide", 7, 4)),
    create("more replicas than usable brokers", topic("wider", 1, 5)),
    create("replication factor 0", topic("rf0", 1, 0)),
    create("replication factor -2", topic("rf-2", 1, -2)),
    create("partitions 0", topic("p0", 0, 1)),
    create("partitions -2", topic("p-2", -2, 1)),
    create("too many partitions", topic("big", 10_000, 1), topic("one-more")),
    create("a batch that is too large", topic("whole-batch", 10_000, 1)),
    create("a batch that is too large, only validated", topic("whole-batch", 10_000, 1), validate_only=True),
    create("exists", topic("defaults", 1, 1)),
    create("empty name", topic("")),
    create("dot", topic(".")),
    create("dots", topic("..")),
    create("slash", topic("a/b")),
    create("name of 249", topic("n" * 249, 1, 1)),
    create("name of 250", topic("n" * 250, 1, 1)),
    create("a name with a dot", topic("col.lision", 1, 1)),
    create("collides", topic("col_lision", 1, 1)),
    create("colliding in one request", topic("in.one"), topic("in_one")),
    create("repeated names and others", topic("rep"), topic("rep"), topic("rep"), topic("not-rep", 1, 1)),
    create("cluster metadata", topic("__cluster_metadata"), topic("beside-it", 1, 1)),
    create("cluster metadata twice", topic("__cluster_metadata"), topic("__cluster_metadata")),
    create("null configs", topic("nulls", 1, 1, retention_ms=None, x=None, segment_ms="1")),
    create("unknown configs", topic("unknown", 1, 1, no_such="1", retention_mss="2", aaa="1", bbb="2", ccc="3")),
    create("not a number", topic("nan", 1, 1, retention_ms="soon")),
    create("not an int", topic("nai", 1, 1, segment_bytes="2147483648")),
    create("with a plus and blanks", topic("plus", 1, 1, segment_bytes=" +2097152 ", preallocate=" TRUE ")),
    create("below the least", topic("low", 1, 1, segment_bytes="14")),
    create("above the most", topic("high", 1, 1, compression_zstd_level="23")),
    create("ratio", topic("ratio", 1, 1, min_cleanable_dirty_ratio="1.5")),
    create("tiny ratio", topic("tiny", 1, 1, min_cleanable_dirty_ratio="-1e-5")),
    create("huge ratio", topic("huge", 1, 1, min_cleanable_dirty_ratio="12345678.25")),
    create("ratio of nothing", topic("noratio", 1, 1, min_cleanable_dirty_ratio="half")),
    create("neither true nor false", topic("bool", 1, 1, preallocate="yes")),
    create("cleanup policy", topic("policy", 1, 1, cleanup_policy="compact, delete,compact")),
    create("no cleanup policy", topic("nopolicy", 1, 1, cleanup_policy="")),
    create("unknown cleanup policy", topic("badpolicy", 1, 1, cleanup_policy="compact,shred")),
    create("hole in cleanup policy", topic("hole", 1, 1, cleanup_policy="compact,,delete")),
    create("compression", topic("compression", 1, 1, compression_type="zip")),
    create("gzip level", topic("gzip", 1, 1, compression_gzip_level="0")),
    create("lag", topic("lag", 1, 1, min_compaction_lag_ms="5", max_compaction_lag_ms="4")),
    create("remote storage", topic("remote", 1, 1, remote_storage_enable="true")),
    create("throttled", topic("throttled", 1, 1, leader_replication_throttled_replicas="0:1, 1:2,x")),
    create("throttled everywhere", topic("all-throttled", 1, 1, leader_replication_throttled_replicas="*")),
    create("internal key", topic("internal", 1, 1, internal_segment_bytes="100")),
    create(
        "many configs", topic("many", 1, 1, min_insync_replicas="2", retention_ms="-1", segment_ms="9", flush_ms="7")
    ),
    create("assigned", topic("assigned", manual=[(1, [2, 1]), (0, [1, 2])]), rng=False),
    create("assigned with a fenced one first", topic("fenced-first", manual=[(0, [4, 1, 3])]), rng=False),
    create("assigned to a cordoned one", topic("cordoned", manual=[(0, [5])]), rng=False),
    create(
        "assigned, with counts", topic("counts", 1, -1, manual=[(0, [1])]), topic("factors", -1, 1, manual=[(0, [1])])
    ),
    create("assigned twice", topic("twice", manual=[(0, [1]), (0, [2])])),
    create("assigned to nobody", topic("nobody", manual=[(0, [])])),
    create("assigned to a stranger", topic("stranger", manual=[(0, [1, 99])])),
    create("assigned to one broker twice", topic("same", manual=[(0, [2, 1, 2])])),
    create("assigned unevenly", topic("uneven", manual=[(0, [1, 2]), (1, [1])])),
    create("assigned to fenced ones", topic("fenced", manual=[(0, [4])])),
    create("assigned with a gap", topic("gap", manual=[(0, [1]), (2, [1])])),
    create("only validated", topic("validated", 1, 1, retention_ms="5"), topic("bad", 0, 1), validate_only=True),
    create("version 2", topic("v2", 1, 1), topic("v2-bad", 1, 0), version=2),
    create("version 4", topic("v4"), version=4),
    create("version 5", topic("v5", 1, 1), version=5),
    *(create(f"with {ms} ms left", topic("a"), topic("b"), timeout_ms=ms, rng=False) for ms in (0, -1)),
    Case(
        "create repeated names with no time left",
        lambda _: CreateTopicsRequest(topics=[topic("a"), topic("a"), topic("__cluster_metadata")], timeout_ms=0),
        7,
    ),
    Case(
        "delete with no time left",
        lambda side: DeleteTopicsRequest(
            topics=[DeleteTopicState(name="v2"), DeleteTopicState(name=None, topic_id=UNHEARD_OF_ID)], timeout_ms=0
        ),
        6,
    ),
    Case("delete with no time left, version 1", lambda _: DeleteTopicsRequest(topic_names=["v2", "v2", "a"]), 1),
    Case("delete repeated names with no time left", lambda _: DeleteTopicsRequest(topic_names=["a", "a"]), 5),
    delete("nothing"),
    delete("by name", ["v2"]),
    delete("by name, version 5", ["v4", "no-such"], version=5),
    delete("by name, version 1", ["v5", "v5", "no-such"], version=1),
    delete("by id", (), ["two"]),
    delete("by unknown id", (), [UNHEARD_OF_ID]),
    delete("repeated", ["plus", "plus", "plus"], ["policy", "policy", UNHEARD_OF_ID, UNHEARD_OF_ID]),
    delete("by name and id", ["policy", "plus"], ["policy"]),
    delete("by name and repeated id", ["policy"], ["policy", "policy"]),
    delete("by neither", (), [bytes(16)]),
    Case(
        "delete by both in one",
        lambda side: DeleteTopicsRequest(topics=[DeleteTopicState(name="plus", topic_id=side.topic_ids["plus"])]),
        6,
    ),
]


def run(side: Side) -> dict[str, Outcome]:
    side.add_five_brokers()
    return side.outcomes(CASES)


@pytest.mark.parametrize("name", [each.name for each in CASES])
def test_responses_and_records_equal_kafkas(outcomes: Any, name: str) -> None:
    theirs, ours = outcomes
    assert ours[name] == theirs[name]


def run_shutdown(side: Any) -> dict[str, Any]:
    """Broker 2 leads, goes into controlled shutdown, is fenced, and stays registered."""
    for broker_id in (1, 2, 3):
        side.add_broker(broker_id, None, 1)
    led = topic("led", manual=[(0, [2, 1])])
    side.outcome(CreateTopicsRequest(topics=[led]), 7)
    outcomes = {}
    for state in ("controlled shutdown", "shut down"):
        heartbeat = BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=side.epochs[2], current_metadata_offset=1 << 40, want_shut_down=True
        )
        outcomes[state] = side.ask(heartbeat, 2)
        side.new_records()
        for factor in (2, 3):
            request = CreateTopicsRequest(topics=[topic(f"{state} {factor}".replace(" ", "-"), 4, factor)])
            outcomes[f"{state}: create with {factor} replicas"] = to_json(side.ask(request, 5), 5)
            outcomes[f"{state}: placed with {factor} replicas"] = [
                (2 in record.replicas, 2 in record.isr, record.leader == 2)
                for record, _ in side.new_records()
                if hasattr(record, "replicas")
            ]
        for broker_id in (1, 3):
            heartbeat = BrokerHeartbeatRequest(
                broker_id=broker_id, broker_epoch=side.epochs[broker_id], current_metadata_offset=1 << 40
            )
            side.ask(heartbeat, 2)
    return outcomes


def test_places_on_a_broker_again_once_it_is_shut_down_and_only_fenced(on_both: Any) -> None:
    theirs, ours = on_both(run_shutdown)
    assert ours == theirs
    assert ours["controlled shutdown: create with 3 replicas"]["topics"][0]["errorCode"] == 38
    assert ours["shut down: placed with 3 replicas"] == [(True, False, False)] * 4
