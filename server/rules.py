"""Rules of proposals that differ from Kafka, and the proposal each belongs to."""

from enum import Enum
from typing import NamedTuple


class Wording(NamedTuple):
    """One rule: its proposal, its text, Kafka's behaviour, and the code that decides."""

    proposal: str
    sentence: str
    shipped: str
    decided_in: str


class Rule(Enum):
    """Rules that replace Kafka's own while they are in `ControllerConfig.rules`."""

    UNASSIGNED_DIR_IS_ZERO = Wording(
        "kip-858",
        "the default value for Directory is Uuid.UNASSIGNED_DIR (Uuid.ZERO)",
        "UNASSIGNED is uuid 1, and uuid 0 is MIGRATING",
        "placement.default_dir",
    )
    NEW_REPLICAS_ARE_UNASSIGNED = Wording(
        "kip-858",
        "For any new partitions, the active controller will use Uuid.UNASSIGNED_DIR as the initial value for log "
        "directory UUID for each replica",
        "the only directory of a broker that has one; MIGRATING on a broker that reported none",
        "placement.default_dir",
    )
    CHANGES_CONTAIN_ALL_DIRECTORIES = Wording(
        "kip-858",
        "PartitionRecord and PartitionChangeRecord will both have a new Directories field",
        "in PartitionChangeRecord it is tagged, and null while directories stay as they are",
        "partition_rules.begin_change",
    )
    UNKNOWN_OFFLINE_DIR_FAILS_THE_HEARTBEAT = Wording(
        "kip-858",
        "If the any of the listed log directory UUIDs is not a registered log directory then the call fails with error "
        "57 — LOG_DIR_NOT_FOUND",
        "it is ignored",
        "heartbeat.heartbeat",
    )
    BROKERS_WAIT_FOR_THEIR_ASSIGNMENTS = Wording(
        "kip-858",
        "Brokers whose registration indicates that multiple log directories are configured remain FENCED until all log "
        "directory assignments for that broker are learnt by the active controller",
        "neither the controller nor the broker waits",
        "heartbeat.heartbeat",
    )
    REGISTRATION_CONTAINS_CORDONED_DIRS = Wording(
        "kip-1066",
        "the broker will include the Uuids of cordoned log directories when it registers to the controller",
        "only heartbeats tell them; a registration forgets them",
        "registration.register_broker",
    )
    CORDONED_DIRS_ARE_ALWAYS_REPORTED = Wording(
        "kip-1066",
        "records have CordonedLogDirs as a list that is never null",
        "null is: not known yet, or no change",
        "log_dirs.directories_offline",
    )
    CORDONING_NEEDS_NO_LEVEL = Wording(
        "kip-1066",
        "This feature is enabled by setting the new configuration, cordoned.log.dirs",
        "it needs metadata.version 4.3-IV0",
        "heartbeat.heartbeat",
    )
    DEFAULT_DIR_IS_NOT_CORDONED = Wording(
        "kip-1066",
        "defaultDir(): This method will return the Uuid of a log directory that is not cordoned",
        "it does not look at cordoned directories: the only one of a broker, else UNASSIGNED",
        "placement.default_dir",
    )
    NO_ASSIGNMENT_TO_CORDONED_BROKERS = Wording(
        "kip-1066",
        "if any of the specified brokers don't have uncordoned log directories, the INVALID_REPLICA_ASSIGNMENT error "
        "will be returned",
        "an explicit assignment is accepted before 4.4",
        "topics.check_new_assignment",
    )
    NO_REASSIGNMENT_TO_CORDONED_BROKERS = Wording(
        "kip-1066",
        "if the request places partitions on brokers with no uncordoned log directories, the INELIGIBLE_REPLICA will "
        "be returned",
        "the reassignment is accepted before 4.4; from then on INVALID_REPLICA_ASSIGNMENT",
        "reassignments._change",
    )
    CORDONED_CONFIG_IS_A_STRING = Wording(
        "kip-1066",
        "cordoned.log.dirs: Type: string",
        "it is a LIST",
        "configs._changed",
    )
    CORDONED_CONFIG_MAY_GROW_ANYWHERE = Wording(
        "kip-1066",
        "This can be … updated at runtime via the Admin client (no other rule for controllers is mentioned)",
        "sent to a controller, the new value must be a subset of the current one",
        "configs._check_record",
    )


PROFILES: dict[str, frozenset[Rule]] = {
    name: frozenset(rule for rule in Rule if rule.value.proposal == name)
    for name in ("kip-18", "kip-113", "kip-858", "kip-1066")
}
"""Rules of each proposal that `--profile` knows; KIP-18's and KIP-113's controller rules equal Kafka's."""
