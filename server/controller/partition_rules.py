"""What holds for a partition when it is changed: topic configs, brokers' states and directories put together."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mockraft.server.controller.elections import Election
from mockraft.server.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, Partition, Topic
from mockraft.server.controller.partitions import PartitionRules

if TYPE_CHECKING:
    from mockraft.server.controller.controller import Controller

_MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
_UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"


def partition_rules(
    controller: "Controller",
    topic: Topic,
    partition: Partition,
    *,
    may_lead: Callable[[int], bool] | None = None,
    election: Election | None = None,
) -> PartitionRules:
    """The rules for one partition.

    `may_lead` says which brokers are able to lead (all active ones when not given); each of them only if the directory
    of its replica is online too (LeaderAcceptor). `election` overrides the kind that the topic's config asks for.
    """
    is_able = controller.is_active if may_lead is None else may_lead

    def is_acceptable_leader(broker_id: int) -> bool:
        return is_able(broker_id) and _is_online(controller, partition, broker_id)

    return PartitionRules(
        version=controller.image.version,
        elr_enabled=controller.image.elr_enabled,
        min_isr=min_isr(controller, topic),
        is_acceptable_leader=is_acceptable_leader,
        default_dir=controller.image.cluster.default_dir,
        election=election or topic_election(controller, topic),
    )


def min_isr(controller: "Controller", topic: Topic) -> int:
    """The topic's effective min.insync.replicas, at most the replication factor of its first partition."""
    value = _effective_config(controller, topic.name, _MIN_INSYNC_REPLICAS)
    wanted = controller.config.min_insync_replicas if value is None else int(value)
    return min(wanted, len(topic.partitions[0].replicas))


def topic_election(controller: "Controller", topic: Topic) -> Election:
    """How the topic's partitions find a leader: uncleanly if its config allows it."""
    value = _effective_config(controller, topic.name, _UNCLEAN_LEADER_ELECTION) or ""
    return Election.UNCLEAN if value.lower() == "true" else Election.ONLINE


def _effective_config(controller: "Controller", topic_name: str, key: str) -> str | None:
    """The topic's own value, else this node's, else the cluster's (KafkaConfigSchema.resolveEffectiveTopicConfig)."""
    configs = controller.image.configs
    for resource in (
        (TOPIC_RESOURCE, topic_name),
        (BROKER_RESOURCE, str(controller.config.node_id)),
        (BROKER_RESOURCE, ""),
    ):
        value = configs.get(resource, {}).get(key)
        if value is not None:
            return value
    return None


def _is_online(controller: "Controller", partition: Partition, broker_id: int) -> bool:
    registration = controller.image.cluster.brokers.get(broker_id)
    if registration is None or broker_id not in partition.replicas:
        return False
    return registration.has_online_dir(partition.directory(broker_id))
