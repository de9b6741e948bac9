"""Elections of leaders: periodic ones (preferred, and unclean where allowed), and those that clients request.

ReplicationControlManager's maybeBalancePartitionLeaders, maybeElectUncleanLeaders and electLeaders (KIP-183, KIP-460).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mockraft.server.controller.image import Topic, TopicPartition
from mockraft.server.controller.image.topics import NO_LEADER
from mockraft.server.controller.result import ApiError, ControllerResult, check_fits_one_batch, invalid_request
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partition_rules import begin_change, topic_election
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext


ELECTIONS_PER_RUN_MAX: Final = 1000


def balance_leaders(controller: ControllerContext, now_ms: int) -> ControllerResult[bool]:
    """Hold a preferred election for each partition that is not led by its first replica."""
    return _elect(controller, controller.image.topics.index.imbalanced(), ElectionType.PREFERRED, "leaders balanced")


def elect_unclean_leaders(controller: ControllerContext, now_ms: int) -> ControllerResult[bool]:
    """Hold an unclean election for each leaderless partition whose topic allows it."""
    topics = controller.image.topics
    places = [
        place
        for place in topics.index.leaderless()
        if topic_election(controller, topics.by_id[place.topic_id]) is ElectionType.UNCLEAN
    ]
    return _elect(controller, places, ElectionType.UNCLEAN, "leaders elected uncleanly")


def _elect(
    controller: ControllerContext, places: Iterable[TopicPartition], election: ElectionType, reason: str
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


_BY_TYPE: Final = {0: ElectionType.PREFERRED, 1: ElectionType.UNCLEAN}
"""Election types on the wire."""


Elections = list[tuple[str, list[tuple[int, ApiError | None]]]]
"""By topic name, in the order of the request: each partition and its error."""


def elect_leaders(
    controller: ControllerContext, election_type: int, places: Iterable[tuple[str, Iterable[int]]] | None
) -> ControllerResult[Elections]:
    """Hold an election for each of these partitions, or (None) for all; then report only the needed ones.

    ApiError INVALID_REQUEST for an unknown type, POLICY_VIOLATION for more changes than one operation may write.
    """
    election = _BY_TYPE.get(election_type)
    if election is None:
        raise invalid_request(f"Unknown election type {election_type}")
    wants_all = places is None
    if places is None:
        topics = sorted(controller.image.topics.by_id.items())
        places = [(topic.name, sorted(topic.partitions)) for _, topic in topics]
    records: list[RecordAt] = []
    results: Elections = []
    for name, partition_ids in places:
        topic = controller.image.topics.by_name.get(name)
        if topic is None:
            unknown = ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
            results.append((name, [(partition_id, unknown) for partition_id in partition_ids]))
            continue
        elected: list[tuple[int, ApiError | None]] = []
        for partition_id in partition_ids:
            try:
                records.append(_elect_if_needed(controller, election, topic, partition_id))
                elected.append((partition_id, None))
            except ApiError as refusal:
                if not wants_all or refusal.error_code != error_codes.ELECTION_NOT_NEEDED:
                    elected.append((partition_id, refusal.kept()))
        results.append((name, elected))
    check_fits_one_batch(records)
    return ControllerResult(records, results, f"{election.value} leaders elected", atomic=False)


def _elect_if_needed(
    controller: ControllerContext, election: ElectionType, topic: Topic, partition_id: int
) -> RecordAt:
    partition = topic.partitions.get(partition_id)
    if partition is None:
        message = f"No such partition as {topic.name}-{partition_id}"
        raise ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, message)
    is_preferred = election is ElectionType.PREFERRED
    if partition.has_preferred_leader if is_preferred else partition.leader != NO_LEADER:
        raise _refusal(error_codes.ELECTION_NOT_NEEDED)
    record = begin_change(controller, topic, partition_id, election=election).build()
    if record is None:
        if is_preferred:
            raise _refusal(error_codes.PREFERRED_LEADER_NOT_AVAILABLE)
        raise _refusal(error_codes.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record


def _refusal(error_code: int) -> ApiError:
    return ApiError(error_code, error_codes.message(error_code))
