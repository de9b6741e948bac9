"""Periodic elections: preferred leaders, and unclean elections of leaderless partitions that allow it.

ReplicationControlManager's maybeBalancePartitionLeaders and maybeElectUncleanLeaders.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mockraft.server.controller.image import TopicPartition
from mockraft.server.controller.result import ControllerResult
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change, topic_election
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

ELECTIONS_PER_RUN_MAX: Final = 1000


def balance_leaders(controller: "ControllerContext", now_ms: int) -> ControllerResult[bool]:
    """Hold a preferred election for each partition that is not led by its first replica."""
    return _elect(controller, controller.image.topics.index.imbalanced(), ElectionType.PREFERRED, "leaders balanced")


def elect_unclean_leaders(controller: "ControllerContext", now_ms: int) -> ControllerResult[bool]:
    """Hold an unclean election for each leaderless partition whose topic allows it."""
    topics = controller.image.topics
    places = [
        place
        for place in topics.index.leaderless()
        if topic_election(controller, topics.by_id[place.topic_id]) is ElectionType.UNCLEAN
    ]
    return _elect(controller, places, ElectionType.UNCLEAN, "leaders elected uncleanly")


def _elect(
    controller: "ControllerContext", places: Iterable[TopicPartition], election: ElectionType, reason: str
) -> ControllerResult[bool]:
    """Write up to a thousand changes; return True if there may be more."""
    records: list[RecordAt] = []
    for place in places:
        if len(records) >= ELECTIONS_PER_RUN_MAX:
            break
        topic = controller.image.topics.by_id[place.topic_id]
        record = begin_change(controller, topic, place.partition_id, election=election).build()
        if record is not None:
            records.append(record)
    return ControllerResult(records, len(records) >= ELECTIONS_PER_RUN_MAX, reason, atomic=False)
