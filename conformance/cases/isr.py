"""AlterPartition: the changes to its ISR that a leader may make."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case, cases
from mockraft.conformance.records import partition_change
from mockraft.conformance.requests import Tree
from mockraft.conformance.world import Broker, Topic, World
from mockraft.releases import Behaviour
from mockraft.wire import error_codes as codes

TEST = "ReplicationControlManagerTest"
FENCED_TEST = f"{TEST}.testAlterPartitionShouldRejectFencedBrokers"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def result(code: int, **fields: object) -> Tree:
    return {"errorCode": 0, "topics": [{"partitions": [{"errorCode": code, **fields}]}]}


async def with_one_out(world: World) -> tuple[Topic, Broker, Broker]:
    """Create a topic led by the first of two brokers; the second runs and is not in the ISR."""
    topic, a, b = await world.replicated(2)
    await world.fence(b)
    await world.unfence(b)
    return topic, a, b


@case("a leader takes a follower into the ISR", f"{TEST}.testShrinkAndExpandIsr")
async def leader_takes_follower_into_isr(world: World) -> None:
    topic, a, b = await with_one_out(world)
    before = await world.partition(topic)
    epochs = {"leaderEpoch": before.leader_epoch, "partitionEpoch": before.partition_epoch + 1}
    answer = result(0, leaderId=a.id, isr=[a.id, b.id], leaderRecoveryState=0, **epochs)
    await world.propose_isr(topic, [a, b], answer=answer)
    await world.wrote(partition_change(topic.id, isr=[a.id, b.id]))


@case("a leader takes a follower out of the ISR", f"{TEST}.testShrinkAndExpandIsr")
async def leader_takes_follower_out_of_isr(world: World) -> None:
    topic, a, _b = await world.replicated(2)
    await world.propose_isr(topic, [a], answer=result(0, isr=[a.id]))
    shrink = {"isr": [a.id], **({"leader": a.id} if world.level < 12 else {})}
    await world.wrote(partition_change(topic.id, **shrink))


@case("an ISR in another order is written", "PartitionChangeBuilder", Rank.QUIRK)
async def isr_in_another_order_is_written(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.propose_isr(topic, [b, a], answer=result(0, isr=[b.id, a.id]))
    await world.wrote(partition_change(topic.id, isr=[b.id, a.id]))


@case("the ISR that is there is answered and not written", "PartitionChangeBuilderTest.testNoChange")
async def isr_that_is_there_is_answered_and_not_written(world: World) -> None:
    topic, a, b = await world.replicated(2)
    await world.propose_isr(topic, [a, b], answer=result(0, isr=[a.id, b.id], partitionEpoch=0))
    await world.wrote()


@case(
    "an ISR over the minimum empties the eligible leaders",
    f"{TEST}.testEligibleLeaderReplicas_ShrinkAndExpandIsr",
    elr=True,
)
async def isr_over_minimum_empties_eligible_leaders(world: World) -> None:
    topic, a, b = await world.replicated(2, min_insync_replicas="2")
    await world.propose_isr(topic, [a], answer=result(0))
    await world.wrote(partition_change(topic.id, isr=[a.id], eligibleLeaderReplicas=[b.id]))
    await world.propose_isr(topic, [a, b], answer=result(0))
    await world.wrote(partition_change(topic.id, isr=[a.id, b.id], eligibleLeaderReplicas=[]))


@case("AlterPartition of version 2 has no broker epochs", "AlterPartitionRequest.json", Rank.SHOULD)
async def alterpartition_of_version_2_has_no_broker_epochs(world: World) -> None:
    topic, a, b = await with_one_out(world)
    await world.propose_isr(topic, [a, b], version=2, answer=result(0, isr=[a.id, b.id]))


@case("a stale broker may alter nothing", "ClusterControlManager.checkBrokerEpoch")
async def stale_broker_may_alter_nothing(world: World) -> None:
    topic, a, _b = await world.replicated(2)
    old = Broker(a.id, a.epoch - 1, a.dirs, a.registration)
    await world.propose_isr(topic, [a], sender=old, answer={"errorCode": codes.STALE_BROKER_EPOCH, "topics": []})
    await world.wrote()


@case("no topics are answered without a look at the broker", "ReplicationControlManager.alterPartition", Rank.QUIRK)
async def no_topics_are_answered_without_look_at_broker(world: World) -> None:
    request = {"brokerId": world.identities.broker_id(), "brokerEpoch": 5}
    await world.send("AlterPartition", request, answer={"errorCode": 0, "topics": []})


@case("an unknown topic id is refused", f"{TEST}.testAlterPartitionHandleUnknownTopicIdOrName")
async def unknown_topic_id_is_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.partition(topic)
    for topic_id in (world.uuid(), NO_ID):
        partition = {"partitionIndex": 0, "newIsrWithEpochs": [{"brokerId": a.id}]}
        request = {**a.sender, "topics": [{"topicId": topic_id, "partitions": [partition]}]}
        await world.send("AlterPartition", request, answer=result(codes.UNKNOWN_TOPIC_ID))


REFUSALS: list[tuple[str, Tree, int]] = [
    ("a partition that is not there", {"partitionIndex": 9}, codes.UNKNOWN_TOPIC_OR_PARTITION),
    ("a leader epoch of the future", {"leaderEpoch": 99}, codes.NOT_CONTROLLER),
    ("a partition epoch of the future", {"partitionEpoch": 99}, codes.NOT_CONTROLLER),
    ("an old leader epoch", {"leaderEpoch": -1}, codes.FENCED_LEADER_EPOCH),
    ("an old partition epoch", {"partitionEpoch": -1}, codes.INVALID_UPDATE_VERSION),
    ("an ISR without members", {"newIsrWithEpochs": []}, codes.INVALID_REQUEST),
    ("an ISR with a negative member", {"newIsrWithEpochs": [{"brokerId": -1}]}, codes.INVALID_REQUEST),
]


@cases("{} is refused", f"{TEST}.testInvalidAlterPartitionRequests", REFUSALS)
async def invalid_isr_is_refused(world: World, fields: Tree, code: int) -> None:
    topic, a, b = await world.replicated(2)
    await world.propose_isr(topic, [a, b], answer=result(code), **fields)
    await world.wrote()


@case("an unknown recovery state is refused", f"{TEST}.testInvalidAlterPartitionRequests", disruptive=True)
async def unknown_recovery_state_is_refused(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.propose_isr(topic, [a], answer={"errorCode": codes.UNKNOWN_SERVER_ERROR}, leaderRecoveryState=2)
    await world.wrote()


PROPOSALS: list[tuple[str, list[int], int]] = [
    ("an ISR that is proposed by a follower", [0], 1),
    ("an ISR without its leader", [1], 0),
    ("an ISR with a broker that is no replica", [0, 1, 2], 0),
    ("an ISR that names a replica twice", [0, 1, 1], 0),
]
"""Indexes of the proposed members and of the sender among three brokers: leader, follower, neither."""


@cases("{} is refused", f"{TEST}.testInvalidAlterPartitionRequests", PROPOSALS)
async def proposed_isr_is_refused(world: World, members: list[int], sender: int) -> None:
    brokers = await world.brokers(3)
    topic = await world.topic(brokers[:2])
    isr = [brokers[index] for index in members]
    await world.propose_isr(topic, isr, sender=brokers[sender], answer=result(codes.INVALID_REQUEST))


@case("a leader that recovers may have no one beside it", f"{TEST}.testInvalidAlterPartitionRequests")
async def leader_that_recovers_may_have_no_one_beside(world: World) -> None:
    topic, a, b = await with_one_out(world)
    await world.propose_isr(topic, [a, b], leaderRecoveryState=1, answer=result(codes.INVALID_REQUEST))


@case("a leader that has recovered cannot recover again", f"{TEST}.testInvalidAlterPartitionRequests")
async def leader_that_has_recovered_cannot_recover_again(world: World) -> None:
    topic, a = await world.replicated(1)
    await world.propose_isr(topic, [a], leaderRecoveryState=1, answer=result(codes.INVALID_REQUEST))


@case("a fenced broker may not join an ISR", FENCED_TEST)
async def fenced_broker_may_not_join_isr(world: World) -> None:
    topic, a, b = await with_one_out(world)
    await world.fence(b)
    await world.propose_isr(topic, [a, b], answer=result(codes.INELIGIBLE_REPLICA))
    await world.wrote()


@case("a broker of another epoch may not join an ISR", f"{TEST}.testAlterPartitionShouldRejectBrokersWithStaleEpoch")
async def broker_of_another_epoch_may_not_join_isr(world: World) -> None:
    topic, a, b = await with_one_out(world)
    old = Broker(b.id, b.epoch - 1, b.dirs, b.registration)
    await world.propose_isr(topic, [a, old], answer=result(codes.INELIGIBLE_REPLICA))
    without_epoch = Broker(b.id, -1, b.dirs, b.registration)
    await world.propose_isr(topic, [a, without_epoch], answer=result(0))


@case(
    "a broker in controlled shutdown may not join an ISR", f"{TEST}.testAlterPartitionShouldRejectShuttingDownBrokers"
)
async def broker_in_controlled_shutdown_may_not_join_isr(world: World) -> None:
    topic, a, b = await with_one_out(world)
    await world.topic([b, a], name="led")
    await world.heartbeat(b, wantShutDown=True, answer={"isFenced": False, "shouldShutDown": False})
    await world.propose_isr(topic, [a, b], answer=result(codes.INELIGIBLE_REPLICA))


@case("a broker that nobody registered any more may not join an ISR", FENCED_TEST)
async def unregistered_broker_may_not_join_isr(world: World) -> None:
    topic, a, b = await with_one_out(world)
    await world.send("UnregisterBroker", {"brokerId": b.id}, answer={"errorCode": 0})
    await world.propose_isr(topic, [a, b], answer=result(codes.INELIGIBLE_REPLICA))


@case(
    "a leader that was elected uncleanly tells that it has recovered",
    "KIP-704",
    has=Behaviour.UNCLEAN_ELECTIONS_BY_CONFIG,
)
async def uncleanly_elected_leader_reports_recovery(world: World) -> None:
    topic, a, b = await world.replicated(2, unclean_leader_election_enable="true")
    await world.fence(a, b)
    await world.unfence(a)
    await world.propose_isr(topic, [a], leaderRecoveryState=1, answer=result(0, leaderRecoveryState=1))
    await world.wrote()
    await world.propose_isr(topic, [a], leaderRecoveryState=0, answer=result(0, leaderRecoveryState=0))
    await world.wrote(partition_change(topic.id, leaderRecoveryState=0))
