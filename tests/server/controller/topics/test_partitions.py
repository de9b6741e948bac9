"""The partition change builder, rule by rule."""

from collections.abc import Iterable
from typing import Any

from mockraft.releases import Behaviour, metadata_version
from mockraft.server.controller.image.topics import RECOVERING, Partition
from mockraft.server.controller.topics.elections import ElectionType
from mockraft.server.controller.topics.partitions import PartitionChange, PartitionRules
from mockraft.wire.message import field_names
from mockraft.wire.records.partition_change_record import PartitionChangeRecord

from ....rows import each_row

TOPIC_ID = bytes(15) + b"\x77"
DIRS = {broker_id: bytes(14) + b"\x01" + bytes([broker_id]) for broker_id in range(20)}
OTHER_DIR = bytes(14) + b"\x02\x00"


def partition(**fields: Any) -> Partition:
    replicas = tuple(fields.pop("replicas", (1, 2, 3)))
    state = {"isr": replicas, "leader": replicas[0], "directories": tuple(DIRS[replica] for replica in replicas)}
    return Partition(**{**state, "replicas": replicas, **fields})


def change(
    state: Partition,
    *,
    alive: Iterable[int] = (1, 2, 3, 4, 5),
    level: int = 30,
    elr: bool = True,
    min_isr: int = 1,
    election: ElectionType = ElectionType.ONLINE,
    **targets: Any,
) -> PartitionChange:
    version = metadata_version(level)
    rules = PartitionRules(
        record_version=version.record_versions["PartitionChangeRecord"],
        has_directories=version.has(Behaviour.DIRECTORY_ASSIGNMENT),
        epoch_grows=version.has(Behaviour.EPOCH_GROWS_AS_THE_ISR_SHRINKS),
        elr_enabled=elr,
        min_isr=min_isr,
        is_acceptable_leader=set(alive).__contains__,
        default_dir=DIRS.__getitem__,
        election=election,
    )
    built = PartitionChange(TOPIC_ID, 7, state, rules)
    for name, value in targets.items():
        setattr(built, name, value)
    return built


def built(state: Partition, **wanted: Any) -> dict[str, Any] | None:
    """The fields that the record sets; None for no record."""
    record_at = change(state, **wanted).build()
    if record_at is None:
        return None
    empty = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=7)
    assert (record_at.record.topic_id, record_at.record.partition_id) == (TOPIC_ID, 7)
    names = [field for field in field_names(PartitionChangeRecord) if field not in ("topic_id", "partition_id")]
    return {n: getattr(record_at.record, n) for n in names if getattr(record_at.record, n) != getattr(empty, n)}


def test_empty_change_writes_no_record() -> None:
    assert built(partition()) is None


# 1: reassignment


def reassigning(**fields: Any) -> Partition:
    state = {"replicas": (1, 2, 3), "isr": (1, 2), "adding_replicas": (3,), "removing_replicas": (1,)}
    return partition(**{**state, **fields})


def test_a_reassignment_waits_for_the_added_replica() -> None:
    assert built(reassigning(), isr=[1, 2]) is None


def test_a_reassignment_never_leaves_an_empty_isr() -> None:
    state = partition(replicas=(1, 2), isr=(1,), adding_replicas=(), removing_replicas=(1,))
    assert built(state, isr=[1]) is None


def test_a_smaller_reassignment_waits_until_all_that_stay_are_in_sync() -> None:
    state = partition(replicas=(1, 2, 3), isr=(1, 2), removing_replicas=(1,))
    assert built(state, isr=[1, 2]) is None
    assert built(state, isr=[1, 2, 3]) == {
        "leader": 2,
        "isr": [2, 3],
        "replicas": [2, 3],
        "removing_replicas": [],
        "directories": [DIRS[2], DIRS[3]],
    }


# 2: eligible leader replicas


def test_an_unclean_shutdown_ends_eligibility() -> None:
    state = partition(isr=(1,), elr=(2, 3))
    assert built(state, min_isr=2, unclean_shutdown_replicas=(2,)) == {"eligible_leader_replicas": [3]}


def test_no_replica_is_eligible_without_elr() -> None:
    assert built(partition(), elr=False, min_isr=2, isr=[1]) == {"isr": [1]}


def test_eligible_replicas_come_in_the_order_of_a_java_hash_set() -> None:
    state = partition(replicas=(5, 15, 16))
    assert built(state, alive=(5,), min_isr=3, isr=[5]) == {"isr": [5], "eligible_leader_replicas": [16, 15]}


# 3: election


def test_an_eligible_replica_that_is_elected_becomes_the_isr() -> None:
    state = partition(isr=(), leader=-1, elr=(2, 3), last_known_elr=(1,))
    assert built(state, min_isr=3, alive=(3,)) == {
        "isr": [3],
        "leader": 3,
        "eligible_leader_replicas": [2],
        "last_known_elr": [],
    }


def test_a_recovering_partition_is_not_marked_again() -> None:
    state = partition(isr=(1,), leader=-1, leader_recovery_state=RECOVERING)
    assert built(state, elr=False, election=ElectionType.UNCLEAN, alive=(2,)) == {"isr": [2], "leader": 2}


def test_last_known_leader_is_elected_uncleanly() -> None:
    state = partition(isr=(), leader=-1, last_known_elr=(3,))
    assert built(state, alive=(1, 2, 3)) == {
        "isr": [3],
        "leader": 3,
        "leader_recovery_state": RECOVERING,
        "last_known_elr": [],
    }


# 5: the ELR is written only when it changes, and cleared when it means nothing any more


def test_an_elr_from_before_the_feature_was_turned_off_is_cleared() -> None:
    assert built(partition(elr=(2,), isr=(1,)), elr=False) == {"eligible_leader_replicas": []}


def test_an_elr_that_stays_is_not_written() -> None:
    assert built(partition(isr=(1,), elr=(2, 3)), min_isr=2, directories={1: OTHER_DIR, 2: DIRS[2], 3: DIRS[3]}) == {
        "directories": [OTHER_DIR, DIRS[2], DIRS[3]]
    }


# 6: ISR


def test_without_elr_the_last_member_stays_in_the_isr() -> None:
    assert built(partition(isr=(1,)), elr=False, isr=[], alive=()) == {"leader": -1}


# 7: epoch bump for a shrinking ISR


@each_row(("level", "leader"), [(11, {"leader": 1}), (12, {})])
def test_old_brokers_see_a_shrinking_isr_by_a_new_leader_epoch(level: int, leader: dict[str, int]) -> None:
    assert built(partition(), level=level, elr=False, isr=[1, 2]) == {"isr": [1, 2], **leader}


def test_growing_isr_keeps_the_leader_epoch() -> None:
    assert built(partition(isr=(1, 2)), level=11, elr=False, isr=[1, 2, 3]) == {"isr": [1, 2, 3]}


# 8: last known leader


def test_last_known_leader_is_recorded_once() -> None:
    state = partition(isr=(), leader=-1, elr=(2,), last_known_elr=(1,))
    assert built(state, alive=()) is None


def test_last_known_leader_is_not_recorded_without_elr() -> None:
    assert built(partition(), elr=False, isr=[], alive=()) == {"leader": -1}


# 9: directories


def test_replica_keeps_its_directory_and_a_new_one_gets_the_default() -> None:
    wanted = built(partition(directories=(OTHER_DIR, DIRS[2], DIRS[3])), replicas=[4, 1, 2, 3])
    assert wanted == {"replicas": [4, 1, 2, 3], "directories": [DIRS[4], OTHER_DIR, DIRS[2], DIRS[3]]}


def test_directories_are_not_written_below_their_level() -> None:
    assert built(partition(), level=16, elr=False, directories={1: OTHER_DIR}) is None


# 10: version


@each_row(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_the_record_has_the_version_of_the_level(level: int, version: int) -> None:
    record_at = change(partition(), level=level, elr=False, isr=[1]).build()
    assert record_at is not None
    assert record_at.version == version
    assert record_at.record.write(record_at.version)
