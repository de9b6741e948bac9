"""Topics, and requests on connections of their own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mockraft.wire import client
from mockraft.wire.messages.create_partitions_request import CreatePartitionsAssignment, CreatePartitionsTopic
from mockraft.wire.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

R = TypeVar("R")


def topic(
    name: str,
    partitions: int = -1,
    factor: int = -1,
    manual: Sequence[tuple[int, list[int]]] = (),
    **configs: str | None,
) -> CreatableTopic:
    """A topic; config names are written with `_` for `.`, `manual` is (index, broker ids) pairs."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in manual],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def assigned(name: str, *replicas: list[int], **configs: str | None) -> CreatableTopic:
    """A topic with these replicas by partition."""
    return topic(name, -1, -1, list(enumerate(replicas)), **configs)


def more_partitions(name: str, count: int, *manual: list[int]) -> CreatePartitionsTopic:
    """A topic that is to have so many partitions, the new ones placed by the controller or on these brokers."""
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in manual] if manual else None
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


async def ask(
    bootstrap: str,
    request: "RequestMessage[R]",
    version: int | None = None,
    *,
    client_id: str = "test",
    request_timeout_ms: int = 30_000,
) -> R:
    """Send a request on a connection of its own and return the response."""
    host, port = bootstrap.rsplit(":", 1)
    connection = client.KafkaConnection(client_id, request_timeout_ms)
    await connection.open(host, int(port))
    try:
        return await connection.send(request, version=version)
    finally:
        await connection.close()


async def described_quorum(bootstrap: str) -> Any:
    """The metadata partition as a controller's DescribeQuorum has it."""
    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    (partition,) = (await ask(bootstrap, DescribeQuorumRequest(topics=[topic]))).topics[0].partitions
    return partition


async def create_topics(bootstrap: str, *topics: CreatableTopic) -> list[bytes]:
    """Create topics and return their ids."""
    response = await ask(bootstrap, CreateTopicsRequest(topics=list(topics), timeout_ms=10_000))
    assert [each.error_code for each in response.topics] == [0] * len(topics), response
    return [each.topic_id for each in response.topics]
