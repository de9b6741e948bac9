"""Constraints of a partition change, from topic configs, brokers' states and directories."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.controller.image import Partition, Topic
from mockraft.server.controller.settings import configs
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partitions import PartitionChange, PartitionRules
from mockraft.server.controller.topics.placement import default_dir

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext
    from mockraft.server.controller.image import Image


def begin_change(
    controller: "ControllerContext",
    topic: Topic,
    partition_id: int,
    *,
    may_lead: Callable[[int], bool] | None = None,
    election: ElectionType | None = None,
    isr_min: int | None = None,
) -> PartitionChange:
    """Return a change of one partition, with its constraints.

    `may_lead` decides which brokers are able to lead (default: all active ones); each of them only if the directory of
    its replica is online too (LeaderAcceptor). `election` overrides the kind from the topic's config, and `isr_min` is
    its `min_isr` if the caller knows it.
    """
    partition = topic.partitions[partition_id]
    is_able = controller.is_active if may_lead is None else may_lead

    def is_acceptable_leader(broker_id: int) -> bool:
        return is_able(broker_id) and _is_online(controller, partition, broker_id)

    rules = PartitionRules(
        record_version=controller.image.version.record_versions["PartitionChangeRecord"],
        elr_enabled=controller.has(Behaviour.ELR),
        epoch_grows=controller.has(Behaviour.EPOCH_GROWS_AS_THE_ISR_SHRINKS),
        has_directories=controller.has(Behaviour.DIRECTORY_ASSIGNMENT),
        min_isr=min_isr(controller, topic) if isr_min is None else isr_min,
        is_acceptable_leader=is_acceptable_leader,
        default_dir=partial(default_dir, controller),
        writes_all_directories=controller.has(Behaviour.CHANGES_CONTAIN_ALL_DIRECTORIES),
        election=election or topic_election(controller, topic),
    )
    return PartitionChange(topic.topic_id, partition_id, partition, rules)


def min_isr(controller: "ControllerContext", topic: Topic) -> int:
    """Return the topic's effective min.insync.replicas, at most the replication factor of its first partition."""
    return _least(configs.topic_config(controller, topic.name, configs.MIN_INSYNC_REPLICAS), topic)


def min_isr_in(image: "Image", topic: Topic) -> int:
    """Return the same for an image without a controller, whose own configs are unknown."""
    return _least(configs.topic_config_in(image, topic.name, configs.MIN_INSYNC_REPLICAS), topic)


def _least(value: str | None, topic: Topic) -> int:
    # A log may have a text that is no number, and begin a topic without its partitions.
    number = int(value) if value is not None and value.isdecimal() and len(value) < 10 else 1
    first = topic.partitions.get(0)
    return number if first is None else min(number, len(first.replicas))


def topic_election(controller: "ControllerContext", topic: Topic) -> ElectionType:
    """Return the kind of election of the topic's partitions: unclean if its config allows it."""
    if not controller.has(Behaviour.UNCLEAN_ELECTIONS_BY_CONFIG):
        return ElectionType.ONLINE
    value = configs.topic_config(controller, topic.name, configs.UNCLEAN_LEADER_ELECTION_ENABLE)
    return ElectionType.UNCLEAN if value is not None and value.lower() == "true" else ElectionType.ONLINE


def _is_online(controller: "ControllerContext", partition: Partition, broker_id: int) -> bool:
    registration = controller.image.cluster.brokers.get(broker_id)
    if registration is None or broker_id not in partition.replicas:
        return False
    return registration.has_online_dir(partition.directory(broker_id))
