"""Partitions added, moved and led by request, on Kafka's controller and on ours: the same answers and records."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from mockraft.server.controller.image import Image
from mockraft.wire.messages import alter_partition_reassignments_request as moves
from mockraft.wire.messages import alter_partition_request as isrs
from mockraft.wire.messages import create_partitions_request as adds
from mockraft.wire.messages import create_topics_request as new
from mockraft.wire.messages import list_partition_reassignments_request as lists
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions

from ...configs import SET, TOPIC, change_configs
from ...topics import assigned
from .conftest import COMPARED, Case

pytestmark = pytest.mark.real_kafka

FAR_OFFSET = 1 << 40
LEVELS = ["3.3-IV3", "3.6-IV0", "3.7-IV2", "4.0-IV1"]
MANY = 10_000


def topics(assignments: dict[str, list[list[int]]], **values: str) -> new.CreateTopicsRequest:
    """Topics with these replicas by partition."""
    made = [assigned(name, *replicas, **values) for name, replicas in assignments.items()]
    return new.CreateTopicsRequest(topics=made, timeout_ms=10_000)


def more(name: str, count: int, *manual: list[int], empty: bool = False) -> adds.CreatePartitionsTopic:
    assignments = [adds.CreatePartitionsAssignment(broker_ids=ids) for ids in manual]
    return adds.CreatePartitionsTopic(name=name, count=count, assignments=assignments if manual or empty else None)


def add(
    name: str,
    *asked: adds.CreatePartitionsTopic,
    version: int = 3,
    timeout_ms: int = 10_000,
    rng: bool = False,
    **fields: Any,
) -> Case:
    request = adds.CreatePartitionsRequest(topics=list(asked), timeout_ms=timeout_ms, **fields)
    return Case(f"add {name}", lambda _: request, version, rng)


def elect(
    name: str, places: dict[str, list[int]] | None, kind: int = 0, version: int = 2, timeout_ms: int = 10_000
) -> Case:
    asked = None if places is None else [TopicPartitions(topic=t, partitions=ids) for t, ids in places.items()]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=timeout_ms)
    return Case(f"elect {name}", lambda _: request, version)


def reassign(
    name: str,
    targets: dict[str, dict[int, list[int] | None]],
    version: int = 1,
    timeout_ms: int = 10_000,
    fast: bool = False,
) -> Case:
    """`fast` holds the replication factor fast."""
    request = moves.AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=not fast,
        topics=[
            moves.ReassignableTopic(
                name=topic,
                partitions=[
                    moves.ReassignablePartition(partition_index=i, replicas=ids) for i, ids in partitions.items()
                ],
            )
            for topic, partitions in targets.items()
        ],
    )
    return Case(f"reassign {name}", lambda _: request, version)


def listed(name: str, places: dict[str, list[int]] | None = None) -> Case:
    asked = None
    if places is not None:
        asked = [lists.ListPartitionReassignmentsTopics(name=t, partition_indexes=ids) for t, ids in places.items()]
    return Case(f"list {name}", lambda _: lists.ListPartitionReassignmentsRequest(topics=asked), 0)


def in_sync(name: str, topic: str, partition_id: int, isr: list[int]) -> Case:
    """The leader proposes this ISR."""

    def request(side: Any) -> isrs.AlterPartitionRequest:
        partition = side.image.topics.by_name[topic].partitions[partition_id]
        data = isrs.PartitionData(
            partition_index=partition_id,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=[isrs.BrokerState(broker_id=member) for member in isr],
        )
        return isrs.AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=side.epochs[partition.leader],
            topics=[isrs.TopicData(topic_id=side.topic_ids[topic], partitions=[data])],
        )

    return Case(f"in sync {name}", request, 3)


def beat(name: str, broker_id: int, *, fence: bool) -> Case:
    def request(side: Any) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=side.epochs[broker_id],
            current_metadata_offset=FAR_OFFSET,
            want_fence=fence,
        )

    return Case(f"{'fence' if fence else 'unfence'} {broker_id} {name}", request, 2)


def unclean(topic: str, value: str) -> Case:
    request = change_configs((TOPIC, topic, (SET, "unclean.leader.election.enable", value)))
    return Case(f"unclean {topic} {value}", lambda _: request, 1)


def outcomes_of(side: Any, cases: Iterable[Case]) -> dict[str, Any]:
    """Answers and records of each case; `side.image` is the image of the records so far."""
    side.image = Image()
    take = side.new_records

    def new_records() -> list[tuple[Any, int]]:
        records: list[tuple[Any, int]] = take()
        for record, _ in records:
            side.image.apply(record, 0)
        return records

    side.new_records = new_records
    side.new_records()
    found: dict[str, Any] = {}
    for case in cases:
        assert case.name not in found
        found[case.name] = side.outcome(case.request(side), case.version, is_chance=case.is_chance)
    return found


HASHED = [f"hashed-{number}" for number in range(15)]

ADDING = [
    Case("topics", lambda _: topics({"one": [[1]], "two": [[1, 2], [2, 3]], "wide": [[1, 2, 3, 4, 5]]}), 7),
    Case("hashed topics", lambda _: topics({name: [[1]] for name in HASHED}), 7),
    add("nothing"),
    add("nothing with no time left", timeout_ms=0),
    add("to an unknown topic", more("no-such", 2)),
    add("none", more("two", 2)),
    add("fewer", more("two", 1)),
    add("a negative number", more("two", -1)),
    add("automatically", more("one", 3), rng=True),
    add("automatically with two replicas", more("two", 9), rng=True),
    add("more replicas than usable brokers", more("wide", 2)),
    add("assigned", more("two", 11, [3, 1], [4, 2])),
    add("assigned to a cordoned one", more("one", 4, [5])),
    add("too few assigned", more("one", 7, [1], [2])),
    add("too many assigned", more("one", 5, [1], [2])),
    add("none assigned", more("one", 6, empty=True)),
    add(
        "assigned to nobody",
        adds.CreatePartitionsTopic(name="one", count=5, assignments=[adds.CreatePartitionsAssignment()]),
    ),
    add("assigned to a stranger", more("two", 12, [1, 99])),
    add("assigned to one broker twice", more("two", 12, [2, 2])),
    add("assigned unevenly", more("two", 12, [1])),
    add("assigned to a fenced one", more("one", 6, [1], [4])),
    add(
        "repeated names and another", more("two", 12), more("one", 5, [2]), more("two", 13), more("a", 1), more("a", 1)
    ),
    add("repeated names with no time left", more("two", 12), more("two", 13), timeout_ms=0),
    add("with no time left", more("two", 12), more("no-such", 13), timeout_ms=0),
    add("with less than no time left", more("two", 12), timeout_ms=-1),
    add("to many topics", *(more(name, 2, [2]) for name in HASHED)),
    add("only validated", more("one", 6, [1]), more("two", 1), validate_only=True),
    *(add(f"version {old}", more("one", 6 + old, [1]), version=old) for old in (0, 1, 2)),
]


def run_adding(side: Any) -> dict[str, Any]:
    side.add_five_brokers()
    return outcomes_of(side, ADDING)


MOVING = [
    Case("topics", lambda _: topics({"t": [[1, 2], [2, 3], [3, 1]], "w": [[1, 2, 3]], "u": [[1, 2], [4, 5]]}), 7),
    Case("strict topics", lambda _: topics({"strict": [[1, 2, 3], [1, 2, 3], [2, 1, 3]]}, min_insync_replicas="3"), 7),
    reassign("nothing", {}),
    reassign("nothing, factors held", {}, fast=True),
    reassign("nothing with no time left", {}, timeout_ms=0),
    reassign("with no time left", {"t": {0: [1], 9: None}, "no-such": {0: [1]}}, timeout_ms=0),
    reassign("no partitions", {"t": {}, "no-such": {}}),
    reassign("an unknown topic", {"no-such": {0: [1], 1: None}, "t": {7: [1], 8: None}}),
    reassign("what is bad", {"t": {0: [], 1: [1, 99], 2: [1, 1]}, "w": {0: None}}),
    reassign("to where it is", {"t": {0: [1, 2]}}),
    reassign("in another order", {"t": {0: [2, 1]}}),
    reassign("in another order, factors held", {"t": {0: [1, 2], 1: [1, 2, 3]}, "w": {0: [1]}}, fast=True),
    reassign("away from a follower", {"w": {0: [1, 3]}}),
    reassign("away from the leader", {"w": {0: [3]}}),
    reassign("to one more", {"t": {0: [1, 2, 4]}}),
    listed("all of one"),
    reassign("the same again", {"t": {0: [1, 2, 4]}}),
    reassign("to what it is on its way from, factors held", {"t": {0: [1, 2]}}, fast=True),
    in_sync("the new one", "t", 0, [1, 2, 4]),
    listed("none", {}),
    reassign("to others", {"t": {0: [5, 3, 4]}, "u": {0: [4, 3]}}),
    reassign("to others in version 0", {"u": {1: [1, 2]}}, version=0),
    listed("all"),
    listed("some", {"u": [1, 7, 0], "no-such": [0], "t": [1]}),
    in_sync("one of two", "u", 0, [1, 2, 4]),
    in_sync("both of two", "u", 0, [1, 2, 3, 4]),
    in_sync("one of two more", "t", 0, [1, 2, 4, 5]),
    reassign("elsewhere on the way", {"t": {0: [5, 1]}}),
    reassign("elsewhere on the way, factors held", {"t": {0: [3, 1, 2]}}, fast=True),
    reassign("to all where it is", {"t": {0: [5, 1, 2, 4, 3]}}),
    listed("on the way", {"t": [0]}),
    reassign("back", {"t": {0: None, 1: None}, "u": {0: None, 1: None}}),
    listed("nothing left"),
    reassign("to p and r", {"t": {1: [2, 4]}}),
    reassign("to p and s", {"t": {1: [2, 5]}}),
    reassign("back from p and s", {"t": {1: None}}),
    reassign("again to p and s", {"t": {1: [2, 5]}}),
    in_sync("the new ones of p and s", "t", 1, [2, 5]),
    reassign("to a fenced one", {"t": {2: [6, 1]}}),
    reassign("one partition twice", {"u": {0: [5, 3]}, "t": {2: None}}),
    reassign("only new ones", {"u": {1: [1, 2]}}),
    in_sync("of the old only one", "u", 1, [4, 1]),
    beat("while it leads", 4, fence=True),
    reassign("back to where nobody is", {"u": {1: None}}),
    unclean("u", "true"),
    beat("too", 5, fence=True),
    reassign("back to where nobody is, uncleanly", {"u": {1: None}}),
    beat("", 5, fence=False),
    unclean("u", "false"),
    beat("again", 4, fence=False),
    reassign("to fewer, which are below min ISR", {"strict": {0: [1], 1: [2, 1], 2: [3, 2, 1]}}),
    beat("of strict", 1, fence=True),
    beat("of strict", 1, fence=False),
    reassign("to fewer with one out of sync", {"strict": {1: [2]}}),
    listed("at last"),
]


def run_moving(side: Any) -> dict[str, Any]:
    for broker_id, log_dirs in enumerate((1, 2, 1, 2, 1), 1):
        side.add_broker(broker_id, None, log_dirs)
    side.add_broker(6, None, 1, fenced=True)
    return outcomes_of(side, MOVING)


ELECTING = [
    Case("topics", lambda _: topics({"t": [[1, 2], [2, 3], [3, 1]], "w": [[1, 2, 3]], "u": [[1, 2]], "x": [[3]]}), 7),
    Case("unclean topic", lambda _: topics({"v": [[1, 2]], "y": [[3]]}, unclean_leader_election_enable="true"), 7),
    elect("nothing", {}),
    elect("nothing with no time left", {}, timeout_ms=0),
    elect("with no time left", {"t": [0, 9], "no-such": [1]}, timeout_ms=0),
    elect("all with no time left", None, timeout_ms=-1),
    *(elect(f"with no time left, version {version}", {"t": [0]}, version=version, timeout_ms=0) for version in (0, 1)),
    *(elect(f"an unknown kind {kind}", {"t": [0, 9], "no-such": [1]}, kind) for kind in (2, -1, 127, -128)),
    elect("an unknown kind of all", None, 2),
    elect("no partitions", {"t": [], "no-such": []}),
    elect("unknown ones", {"t": [4, -1], "no-such": [1]}),
    elect("unknown ones uncleanly", {"t": [4], "no-such": [1]}, 1),
    elect("what is led", {"t": [0, 1]}),
    elect("what is led, uncleanly", {"t": [0, 1]}, 1),
    elect("all that is led", None),
    elect("all that is led, uncleanly", None, 1),
    beat("", 1, fence=True),
    elect("who is fenced", {"t": [0], "w": [0]}),
    beat("", 1, fence=False),
    elect("who is not in sync", {"t": [0], "w": [0]}),
    elect("all, who are not in sync", None),
    in_sync("who was fenced", "t", 0, [2, 1]),
    in_sync("who was fenced too", "w", 0, [2, 3, 1]),
    elect("uncleanly what has another leader", {"t": [0]}, 1),
    elect("one partition twice", {"t": [0, 0, 1]}),
    elect("again", {"t": [0]}),
    elect("all, of which one needs it", None),
    elect("in version 0", {"w": [0]}, version=0),
    beat("for good", 3, fence=True),
    elect("for who is lost", {"x": [0], "y": [0]}),
    elect("for who is lost, uncleanly", {"x": [0], "y": [0]}, 1),
    beat("for good", 1, fence=True),
    beat("for good", 2, fence=True),
    add("when nobody lives", more("x", 2)),
    elect("for all who are lost", None),
    elect("for all who are lost, uncleanly", None, 1),
    beat("who was out first", 3, fence=False),
    elect("for those that 3 may have", {"t": [1, 2], "w": [0], "u": [0]}),
    elect("for those that 3 may have, uncleanly", {"t": [1, 2], "w": [0], "u": [0]}, 1),
    elect("in version 1", {"t": [0]}, 1, version=1),
    beat("again", 1, fence=False),
    elect("for the rest uncleanly", None, 1),
    elect("for the rest", None),
    beat("again", 2, fence=False),
    elect("for what is left uncleanly", None, 1),
    elect("for what is left", None),
]


def run_electing(side: Any) -> dict[str, Any]:
    for broker_id in (1, 2, 3):
        side.add_broker(broker_id, None, broker_id)
    return outcomes_of(side, ELECTING)


RUNS = {"adding": (run_adding, ADDING), "moving": (run_moving, MOVING), "electing": (run_electing, ELECTING)}


@pytest.fixture(scope="module")
def outcomes(on_both: Any) -> Any:
    return {area: on_both(run) for area, (run, _) in RUNS.items()}


@pytest.mark.parametrize(("area", "name"), [(area, case.name) for area, (_, cases) in RUNS.items() for case in cases])
def test_responses_and_records_equal_kafkas(outcomes: Any, area: str, name: str) -> None:
    theirs, ours = outcomes[area]
    assert comparable_outcome(ours[name]) == comparable_outcome(theirs[name])


@pytest.mark.parametrize("level", LEVELS)
def test_moves_and_elects_as_kafka_does_at_this_level(on_both: Any, level: str) -> None:
    for run in (run_moving, run_electing):
        theirs, ours = on_both(run, level)
        assert {name: comparable_outcome(each) for name, each in ours.items()} == {
            name: comparable_outcome(each) for name, each in theirs.items()
        }


def comparable_outcome(outcome: Any) -> tuple[Any, list[Any]]:
    """The parts of several partitions in one operation, which come from Kafka's hash maps in any order."""
    for topic in outcome.answer.get("replicaElectionResults", ()):
        topic["partitionResult"].sort(key=str)
    records: list[Any] = []
    for name, same in itertools.groupby(outcome.records, key=lambda record: record[0]):
        run = list(same)
        records += sorted(run, key=str) if name == "PartitionChangeRecord" else run
    return outcome.answer, records


def run_large(side: Any) -> list[Any]:
    """Requests over the limit of 10,000 records, and how many records each wrote."""
    for broker_id in (1, 2):
        side.add_broker(broker_id, None, 1)
    every, both = list(range(MANY + 1)), [[1, 2]] * MANY
    cases = [
        Case("topics", lambda _: topics({"big": [[1, 2]], "small": [[1, 2]], "other": [[1, 2]]}), 7),
        add("too many, only validated", more("small", MANY + 2), more("big", MANY + 2), validate_only=True),
        add("too many", more("small", 3, *both[:2]), more("big", 1 + MANY, *both), more("other", 2)),
        add("the rest", more("big", 1 + MANY, *both[:2])),
        reassign("too many", {"big": {partition_id: [2, 1] for partition_id in every}}),
        reassign("the last one", {"big": {MANY: [2, 1]}}),
        elect("too many of all", None),
        elect("too many by name", {"small": [0, 1], "big": every}),
        elect("not too many", {"big": every[2:]}),
    ]
    found: list[Any] = []
    for name, outcome in outcomes_of(side, cases).items():
        codes: Counter[str] = Counter(re.findall(r"'errorCode': -?\d+, 'errorMessage': [^}]*", str(outcome.answer)))
        found.append((name, sorted(codes.items()), Counter(record[0] for record in outcome.records)))
    return found


@pytest.mark.parametrize("kafka_version", COMPARED)
def test_requests_too_large_for_one_batch_are_refused_as_in_kafka(on_both: Any, kafka_version: str) -> None:
    theirs, ours = on_both(run_large, kafka_version=kafka_version)
    assert ours == theirs
