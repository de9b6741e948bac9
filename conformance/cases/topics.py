"""CreateTopics: valid and invalid topics, and the records written."""

from __future__ import annotations

from collections.abc import Callable

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.expectation import MISSING, InAnyOrder, Only, expect, like, refused
from mockraft.conformance.records import record
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import TIMEOUT_MS, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest"
APIS_TEST = "ControllerApisTest"
DEFAULTS = -1


async def create(world: World, *topics: Tree, answer: object, version: int = -1, **fields: object) -> Tree:
    """Send CreateTopics with these; `answer` is expected of the topics in the response."""
    request = {"topics": list(topics), "timeoutMs": TIMEOUT_MS, **fields}
    return await world.send("CreateTopics", request, answer={"topics": answer}, version=version)


def counted(name: str, partitions: int = DEFAULTS, replicas: int = DEFAULTS, **configs: str | None) -> Tree:
    """Return a topic that Kafka places."""
    return {
        "name": name,
        "numPartitions": partitions,
        "replicationFactor": replicas,
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }


@case("a topic's records are the topic, its configs, then its partitions by index", f"{TEST}.testCreateTopics")
async def topics_records_are_topic_its_configs_then_its_partitions_by_index(world: World) -> None:
    a, b = await world.brokers(2)
    request = world.creatable("t", [a, b], [b, a], retention_ms="5")
    description = await create(world, request, answer=[{"errorCode": 0, "numPartitions": 2, "replicationFactor": 2}])
    topic_id = description["topics"][0]["topicId"]
    both = {"topicId": topic_id, "leaderEpoch": 0, "partitionEpoch": 0, "leaderRecoveryState": MISSING}
    await world.wrote(
        record("Topic", name=request["name"], topicId=topic_id),
        record("Config", resourceType=2, resourceName=request["name"], name="retention.ms", value="5"),
        record("Partition", partitionId=0, replicas=[a.id, b.id], isr=[a.id, b.id], leader=a.id, **both),
        record("Partition", partitionId=1, replicas=[b.id, a.id], isr=[b.id, a.id], leader=b.id, **both),
    )


@case("a replica on a broker with one directory is in that directory", "KIP-858", since=17)
async def replica_on_broker_with_one_directory_is_in_that_directory(world: World) -> None:
    a = await world.broker()
    await create(world, world.creatable("t", [a]), answer=[{"errorCode": 0}])
    await world.wrote(record("Topic"), record("Partition", directories=a.dirs))


@case("a replica on a broker with several directories is unassigned", "KIP-858", since=17)
async def replica_on_broker_with_several_directories_is_unassigned(world: World) -> None:
    a, b = await world.broker(log_dirs=2), await world.broker()
    await create(world, world.creatable("t", [a, b]), answer=[{"errorCode": 0}])
    await world.wrote(record("Topic"), record("Partition", directories=["AAAAAAAAAAAAAAAAAAAAAQ", *b.dirs]))


@case("a fenced replica is not in the ISR and does not lead", f"{TEST}.testManualPartitionAssignmentOnAllFencedBrokers")
async def fenced_replica_is_not_in_isr_and_does_not_lead(world: World) -> None:
    fenced, a = await world.broker(fenced=True), await world.broker()
    await create(world, world.creatable("t", [fenced, a]), answer=[{"errorCode": 0}])
    await world.wrote(record("Topic"), record("Partition", replicas=[fenced.id, a.id], isr=[a.id], leader=a.id))


@case("assignments may come in any order of indexes", f"{TEST}.testCreateTopics", Rank.SHOULD)
async def assignments_may_come_in_any_order_of_indexes(world: World) -> None:
    a, b = await world.brokers(2)
    request = world.creatable("t", [a], [b])
    request["assignments"].reverse()
    await create(world, request, answer=[{"errorCode": 0}])
    await world.wrote(
        record("Topic"),
        record("Partition", partitionId=0, leader=a.id),
        record("Partition", partitionId=1, leader=b.id),
    )


@case("a topic that is only validated is not written", f"{TEST}.testCreateTopicsWithValidateOnlyFlag")
async def topic_that_is_only_validated_is_not_written(world: World) -> None:
    a = await world.broker()
    answer = [{"errorCode": 0, "numPartitions": 1, "replicationFactor": 1}]
    await create(world, world.creatable("t", [a]), validateOnly=True, answer=answer)
    await world.wrote()


@case(
    "the configs of a new topic are told with where they come from", f"{TEST}.testCreateTopicsWithConfigs", Rank.SHOULD
)
async def configs_of_new_topic_are_returned_with_their_source(world: World) -> None:
    a = await world.broker()
    description = await create(world, world.creatable("t", [a], flush_ms="4"), answer=[{"errorCode": 0}])
    configs = {each["name"]: each for each in description["topics"][0]["configs"]}
    expect("the order of the configs", sorted(configs), list(configs))
    expect("flush.ms", {"value": "4", "configSource": 1}, configs["flush.ms"])
    expect("cleanup.policy", {"value": "delete", "configSource": 5}, configs["cleanup.policy"])


@case("CreateTopics before version 5 says nothing about configs", "CreateTopicsResponse.json", Rank.SHOULD)
async def create_topics_before_version_5_returns_no_configs(world: World) -> None:
    a = await world.broker()
    for version in (2, 3, 4):
        request = world.creatable(f"t{version}", [a])
        description = Only(name=request["name"], errorCode=0, errorMessage=None)
        await create(world, request, version=version, answer=[description])


@case("a topic that exists is refused", f"{TEST}.testCreateTopics")
async def topic_that_exists_is_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    answer = [refused(codes.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")]
    await create(world, world.creatable("t", [a]), answer=answer)
    await world.wrote()


@case("a topic that exists is refused before its counts are looked at", f"{TEST}.testCreateTopics", Rank.SHOULD)
async def topic_that_exists_is_refused_before_its_counts_are_looked_at(world: World) -> None:
    topic = await world.topic([await world.broker()])
    await create(world, counted(topic.name, 0, 0), answer=[{"errorCode": codes.TOPIC_ALREADY_EXISTS}])


@case("a name that collides with another but for dots and underscores is refused", f"{TEST}.testTopicNameCollision")
async def name_that_collides_with_another_but_for_dots_and_underscores_is_refused(world: World) -> None:
    topic, a = await world.replicated(1, name="a.b")
    request = world.creatable("a_b", [a])
    description = f"Topic '{request['name']}' collides with existing topic: {topic.name}"
    await create(world, request, answer=[refused(codes.INVALID_TOPIC_EXCEPTION, description)])


@case("a good topic beside a bad one is created", f"{TEST}.testCreateTopics")
async def good_topic_beside_bad_one_is_created(world: World) -> None:
    a = await world.broker()
    good, bad = world.creatable("good", [a]), counted(world.name("bad"), 0, 1)
    answer = InAnyOrder(
        [{"name": good["name"], "errorCode": 0}, {"name": bad["name"], "errorCode": codes.INVALID_PARTITIONS}]
    )
    await create(world, bad, good, answer=answer)
    await world.wrote(record("Topic", name=good["name"]), record("Partition"))


@case("a name that is asked for twice is refused, others are not", f"{APIS_TEST}.testCreateTopics")
async def name_that_is_asked_for_twice_is_refused_others_are(world: World) -> None:
    a = await world.broker()
    twice, once = world.creatable("twice", [a]), world.creatable("once", [a])
    answer = InAnyOrder(
        [
            {"name": twice["name"], **refused(codes.INVALID_REQUEST, "Duplicate topic name.")},
            {"name": once["name"], "errorCode": 0},
        ]
    )
    await create(world, twice, once, twice, answer=answer)
    await world.wrote(record("Topic", name=once["name"]), record("Partition"))


@case("the metadata topic cannot be created", f"{APIS_TEST}.testCreateTopics", has=Behaviour.METADATA_TOPIC_IS_INVALID)
async def metadata_topic_cannot_be_created(world: World) -> None:
    message = "Creation of internal topic __cluster_metadata is prohibited."
    await create(world, counted("__cluster_metadata", 1, 1), answer=[refused(codes.INVALID_REQUEST, message)])


@case(
    "nobody is authorized to create the metadata topic",
    f"{APIS_TEST}.testCreateTopics",
    lacks=Behaviour.METADATA_TOPIC_IS_INVALID,
)
async def nobody_is_authorized_to_create_metadata_topic(world: World) -> None:
    answer = [refused(codes.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")]
    await create(world, counted("__cluster_metadata", 1, 1), answer=answer)


@case("no topics are no trouble", f"{APIS_TEST}.testCreateTopics")
async def no_topics_are_no_trouble(world: World) -> None:
    await create(world, answer=[])


@case("topics that were to be created in no time are refused", "QuorumController.createTopics", Rank.SHOULD)
async def topics_that_were_to_be_created_in_no_time_are_refused(world: World) -> None:
    a = await world.broker()
    await create(world, world.creatable("t", [a]), timeoutMs=0, answer=[{"errorCode": codes.REQUEST_TIMED_OUT}])
    await world.wrote()


@case(
    "more than 10,000 partitions in a request are refused",
    "ReplicationControlManager.validateTotalNumberOfPartitions",
    Rank.SHOULD,
    has=Behaviour.PARTITION_COUNT_IS_NAMED,
)
async def more_than_10_000_partitions_in_request_are_refused(world: World) -> None:
    message = "Excessively large number of partitions per request."
    request = [counted(world.name("a"), 10_000, 1), counted(world.name("b"), 1, 1)]
    await create(world, *request, answer=[refused(codes.POLICY_VIOLATION, message)] * 2)


@case(
    "more partitions than records of a batch are refused",
    "BoundedList, QuorumController.MAX_RECORDS_PER_USER_OP",
    Rank.SHOULD,
    lacks=Behaviour.PARTITION_COUNT_IS_NAMED,
)
async def more_partitions_than_records_of_batch_are_refused(world: World) -> None:
    await world.broker()
    message = "Unable to perform excessively large batch operation."
    request = [counted(world.name("a"), 10_000, 1), counted(world.name("b"), 1, 1)]
    await create(world, *request, answer=[refused(codes.POLICY_VIOLATION, message)] * 2)


@case("more records than a batch takes are refused", "QuorumController, KIP-631", Rank.SHOULD, alone=True)
async def more_records_than_batch_takes_are_refused(world: World) -> None:
    a = await world.broker()
    request = world.creatable("t", *[[a]] * 10_000)
    message = "Unable to perform excessively large batch operation."
    await create(world, request, answer=[refused(codes.POLICY_VIOLATION, message)])
    await world.wrote()


NAMES: list[tuple[str, str, str]] = [
    ("an empty name", "", "the empty string is not allowed"),
    ("a dot", ".", "'.' is not allowed"),
    ("two dots", "..", "'..' is not allowed"),
    ("a name with a slash", "a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ("a name of 250 letters", "n" * 250, f"the length of '{'n' * 250}' is longer than the max allowed length 249"),
]  # fmt: skip
TOO_FEW_PARTITIONS = "Number of partitions was set to an invalid non-positive value."
TOO_FEW_REPLICAS = "Replication factor must be larger than 0, or -1 to use the default value."
COUNTS: list[tuple[str, int, int, int, str]] = [
    ("no partitions", 0, 1, codes.INVALID_PARTITIONS, TOO_FEW_PARTITIONS),
    ("-2 partitions", -2, 1, codes.INVALID_PARTITIONS, TOO_FEW_PARTITIONS),
    ("no replicas", 1, 0, codes.INVALID_REPLICATION_FACTOR, TOO_FEW_REPLICAS),
    ("-2 replicas", 1, -2, codes.INVALID_REPLICATION_FACTOR, TOO_FEW_REPLICAS),
]
CONFIGS: list[tuple[str, dict[str, str | None], object]] = [
    ("an unknown config", {"no_such": "1"}, "Unknown topic config name: no.such"),
    ("a null config", {"retention_ms": None}, "Null value not supported for topic configs: retention.ms"),
    ("a config that is no number", {"retention_ms": "soon"}, "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
    ("a config below its least", {"segment_bytes": "13"}, like("Invalid value 13 for configuration segment.bytes: Value must be at least .*")),
    ("a config that is no boolean", {"preallocate": "yes"}, "Invalid value yes for configuration preallocate: Expected value to be either true or false"),
    ("an unknown cleanup policy", {"cleanup_policy": "shred"}, like("Invalid value shred for configuration cleanup.policy: String must be one of: .*")),
    ("an unknown compression", {"compression_type": "zip"}, like("Invalid value zip for configuration compression.type: String must be one of: .*")),
    ("a ratio over 1", {"min_cleanable_dirty_ratio": "1.5"}, "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"),
    ("a least lag over the most", {"min_compaction_lag_ms": "5", "max_compaction_lag_ms": "4"}, like(".*min.compaction.lag.ms.*max.compaction.lag.ms.*")),
]  # fmt: skip


@cases("{} is no topic name", f"{TEST}.testValidateNewTopicNames", NAMES, Rank.SHOULD)
async def invalid_topic_name_is_refused(world: World, name: str, message: str) -> None:
    answer = [refused(codes.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {message}")]
    await create(world, counted(name, 1, 1), answer=answer)


@cases("a topic of {} is refused", f"{TEST}.testCreateTopics", COUNTS)
async def invalid_counts_are_refused(world: World, partitions: int, replicas: int, code: int, message: str) -> None:
    await create(world, counted(world.name(), partitions, replicas), answer=[refused(code, message)])
    await world.wrote()


@cases("a topic with {} is refused", f"{TEST}.testCreateTopicsWithConfigs", CONFIGS, Rank.SHOULD)
async def invalid_config_is_refused(world: World, configs: dict[str, str | None], message: object) -> None:
    a = await world.broker()
    request = world.creatable("t", [a], **configs)
    await create(world, request, answer=[refused(codes.INVALID_CONFIG, message)])
    await world.wrote()


Assignments = Callable[[int, int], list[list[int]]]
ASSIGNMENTS: list[tuple[str, Assignments, str]] = [
    ("to nobody", lambda a, b: [[]], "The manual partition assignment includes an empty replica list."),
    ("to a stranger", lambda a, b: [[a, -7]], "The manual partition assignment includes broker -7, but no such broker is registered."),
    ("to one broker twice", lambda a, b: [[a, b, a]], "The manual partition assignment includes the broker {a} more than once."),
    ("to numbers of brokers that differ", lambda a, b: [[a, b], [a]], "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 replica(s)."),
]  # fmt: skip


@cases("a topic assigned {} is refused", f"{TEST}.testValidateBadManualPartitionAssignments", ASSIGNMENTS)
async def invalid_assignment_is_refused(world: World, assignment: Assignments, message: str) -> None:
    a, b = await world.brokers(2)
    request = world.creatable("t")
    request["assignments"] = [
        {"partitionIndex": index, "brokerIds": ids} for index, ids in enumerate(assignment(a.id, b.id))
    ]
    answer = [refused(codes.INVALID_REPLICA_ASSIGNMENT, message.format(a=a.id))]
    await create(world, request, answer=answer)
    await world.wrote()


@case("a topic assigned to fenced brokers only is refused", f"{TEST}.testManualPartitionAssignmentOnAllFencedBrokers")
async def topic_assigned_to_fenced_brokers_only_is_refused(world: World) -> None:
    fenced = await world.broker(fenced=True)
    message = (
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled shutdown."
    )
    await create(world, world.creatable("t", [fenced]), answer=[refused(codes.INVALID_REPLICA_ASSIGNMENT, message)])


@case("a topic with an assignment and counts is refused", f"{TEST}.testCreateTopics")
async def topic_with_assignment_and_counts_is_refused(world: World) -> None:
    a = await world.broker()
    for key, what in (("numPartitions", "numPartitions"), ("replicationFactor", "replication factor")):
        message = f"A manual partition assignment was specified, but {what} was not set to -1."
        request = {**world.creatable("t", [a]), key: 1}
        await create(world, request, answer=[refused(codes.INVALID_REQUEST, message)])


INDEXES: list[tuple[str, int, str]] = [
    ("a partition assigned twice", 0, "Found multiple manual partition assignments for partition 0"),
    ("a gap between its partitions", 2, "partitions should be a consecutive 0-based integer sequence"),
]


@cases("a topic with {} is refused", f"{TEST}.testCreateTopics", INDEXES)
async def invalid_partition_index_is_refused(world: World, index: int, message: str) -> None:
    a = await world.broker()
    request = world.creatable("t", [a], [a])
    request["assignments"][1]["partitionIndex"] = index
    await create(world, request, answer=[refused(codes.INVALID_REPLICA_ASSIGNMENT, message)])
