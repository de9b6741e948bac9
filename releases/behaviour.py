"""The gate: how controllers differ, and when.

`Behaviour` is the one list of them. A member's row (`Row`) is its condition: the release with which it came or went, a
level of metadata.version, kraft.version or another feature, or a proposal. A server asks `controller.has(…)`, which
knows all of these; `Release.has` and `MetadataVersion.has` answer where only a release or a level is known. No other
code compares releases or levels to decide how to behave.

Behaviour that came with a release was found by running the conformance suite on each release's own controller; the
classes named are Kafka's. Levels are checked against `MetadataVersion` of each release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from functools import cache
from typing import NamedTuple

from mockraft.wire.spec_files import sort_key

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
"""Names of the features that every controller has."""

GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
ELR_VERSION = "eligible.leader.replicas.version"

_LEVEL_MAX = (1 << 15) - 1


class Levels(NamedTuple):
    """Levels of a feature, both ends included."""

    feature: str
    low: int
    high: int = _LEVEL_MAX


class Row(NamedTuple):
    """A behaviour as a sentence, and its conditions: any one of them is enough.

    `since` is the first release ("4.0") or patch release ("4.0.2") with it, `until` the first one without it.
    `backports` are patch releases of older lines that have it, too: with since 4.4 and the backport 4.2.2, 4.2.3 has it
    and 4.3.1 does not. `otherwise` is Kafka's behaviour where a proposal has another one.
    """

    rule: str
    since: str = ""
    backports: tuple[str, ...] = ()
    until: str = ""
    levels: Levels | None = None
    proposal: str = ""
    otherwise: str = ""

    def is_met(self, kafka_version: str, levels: Mapping[str, int], proposals: Iterable[str]) -> bool:
        """Return True if a condition is met: the decision of the gate."""
        if self.proposal in proposals:
            return True
        if self.levels is not None and self.levels.low <= levels.get(self.levels.feature, -1) <= self.levels.high:
            return True
        if not kafka_version or not (self.since or self.until):
            return False
        key = sort_key(kafka_version)
        if any(sort_key(first) <= key and sort_key(first)[:2] == key[:2] for first in self.backports):
            return True
        return (not self.since or key >= sort_key(self.since)) and (not self.until or key < sort_key(self.until))


def _since(release: str, rule: str, *backports: str) -> Row:
    return Row(rule, since=release, backports=backports)


def _from(level: int, rule: str) -> Row:
    return Row(rule, levels=Levels(METADATA_VERSION, level))


def _kip_858(rule: str, otherwise: str) -> Row:
    return Row(rule, proposal="kip-858", otherwise=otherwise)


def _kip_1066(rule: str, otherwise: str) -> Row:
    return Row(rule, proposal="kip-1066", otherwise=otherwise)


@unique
class Behaviour(Enum):
    """One way in which controllers differ: by release, then by level, then by proposal."""

    __hash__ = object.__hash__  # a set of them is asked for every request: Enum's own hash is a call of Python

    UNKNOWN_FEATURES_ARE_CHECKED = _since("3.8", "a broker that needs a level of an unknown feature may not register")
    EPOCH_IS_KEPT = _since("3.9", "the same incarnation registers again with its broker epoch (ClusterControlManager)")
    METADATA_TOPIC_IS_INVALID = _since("3.9", "__cluster_metadata is an invalid topic, not an unauthorized one")
    PARTITION_COUNT_IS_NAMED = _since("3.9", "CreateTopics refuses the partitions of a request by their number")
    UNCLEAN_ELECTIONS_BY_CONFIG = _since(
        "3.9", "unclean.leader.election.enable is followed (ReplicationControlManager)"
    )
    DIRECTORY_IDS_ARE_PLAIN = _since("4.0", "directory ids of voters are not shown as Optional[id] (ReplicaKey)")
    KRAFT_VERSION_RECORDS_ARE_NOT_READ = _since("4.0", "updates of kraft.version are checked as if it were at level 0")
    FENCED_BROKERS_KEEP_THEIR_SESSION = _since(
        "4.0", "heartbeats of a fenced broker keep its session (BrokerHeartbeatManager)"
    )
    MISSING_METADATA_VERSION_IS_INVALID = _since(
        "4.0", "a registration without metadata.version is INVALID_REGISTRATION"
    )
    FEATURES_FAIL_TOGETHER = _since(
        "4.0", "one bad feature has the others of the request refused, too (FeatureControlManager)"
    )
    CLIENT_METRICS_ARE_PARSED = _since("4.0", "client metrics are parsed as all configs are (ClientMetricsConfigs)")
    GROUPS_HAVE_CONFIGS = _since("4.0", "resources of type GROUP have configs (GroupConfig)")
    KRAFT_VERSION_STAYS = _since("4.1", "kraft.version cannot be downgraded (FeatureControlManager)")
    STREAMS_VERSION_IS_KNOWN = _since(
        "4.1", "UpdateFeatures accepts streams.version 0, though 4.1 has no level above it"
    )
    UNKNOWN_BROKER_IS_NAMED = _since("4.1", "UnregisterBroker names the broker that is not registered")
    REMOTE_STORAGE_NEEDS_DELETE_POLICY = _since("4.1", "remote storage needs cleanup.policy=delete (LogConfig)")
    CLIENT_METRICS_HAVE_DEFAULTS = _since("4.1", "DescribeConfigs has the defaults of client metrics (ConfigHelper)")
    CLEANUP_POLICY_MAY_BE_EMPTY = _since(
        "4.2", "cleanup.policy may be empty, with remote storage too (KIP-1161, LogConfig)"
    )
    DOWNGRADE_NAMES_BOTH_LEVELS = _since("4.2", "a refused downgrade of metadata.version names the present level")
    AUTO_JOIN = _since("4.2", "an observer may add itself to the voters (KIP-853, controller.quorum.auto.join.enable)")
    CORDONING = _since("4.3", "cordoned.log.dirs is a known key, and a refused placement names it (KIP-1066)")
    GROUP_SYNONYMS_ARE_THE_BROKERS = _since("4.3", "the synonym of a group's default is the broker's key (GroupConfig)")
    CONTROLLERS_ARE_NODES = _since(
        "4.3", "a controller of a dynamic quorum has configs by its id (FeatureControlManager)"
    )
    ADDED_PARTITIONS_ARE_COUNTED = _since("4.4", "CreatePartitions refuses the partitions of a request by their number")
    ACL_HOSTS_ARE_RANGES = _since(
        "4.4", "hosts of ACLs are checked, and may be ranges of addresses (KIP-1276, CidrUtils)"
    )
    GROUP_BOUNDS_ARE_NUMBERS = _since("4.4", "a refused group config names its bounds, not their keys (GroupConfig)")
    LOGGER_OPERATIONS_ARE_NAMED = _since("4.4", "an unknown operation on a broker logger is INVALID_REQUEST")
    QUOTAS_ARE_FINITE = _since("4.4", "infinite client quotas are refused (ClientQuotaControlManager)")
    CORDONED_BROKERS_GET_NO_REPLICAS = _since(
        "4.4", "assignments that name a wholly cordoned broker are refused (KAFKA-20441)"
    )

    SNAPSHOTS_ARE_FETCHED_SINGLY = _since(
        "4.4", "FetchSnapshot of anything but one partition of one topic is INVALID_REQUEST (KafkaRaftClient)", "4.2.2"
    )
    READERS_ARE_BOUNDED = _since(
        "4.4",
        "a request with an array of over 1,000,000 elements, or over 10,000 tagged fields in a struct, closes its "
        "connection (MessageUtil)",
        "4.2.2",
    )
    VOTERS_STAY_REGISTERED = _since(
        "4.5", "UnregisterController of a voter is INVALID_REQUEST (KAFKA-20865, QuorumController)"
    )
    UPDATED_VOTERS_ARE_ASKED = _since(
        "4.5",
        "UpdateRaftVoter asks the voter for its ApiVersions first, and is REQUEST_TIMED_OUT without an answer "
        "(KAFKA-20661, UpdateVoterHandler)",
    )
    ABORTED_ADDITIONS_NAME_THE_VOTER = _since(
        "4.5", "AddRaftVoter names the voter that did not answer ApiVersions (AddVoterHandler)"
    )

    EPOCH_GROWS_AS_THE_ISR_SHRINKS = Row(
        "the leader epoch grows when the ISR shrinks, for brokers before 3.6 (KAFKA-15021)",
        levels=Levels(METADATA_VERSION, 0, 11),
    )
    NO_OP_RECORDS = _from(5, "an idle controller writes NoOpRecord (KIP-835)")
    REGISTRATION_CHANGES = _from(
        6, "fencing is a BrokerRegistrationChangeRecord, not a FenceBrokerRecord or UnfenceBrokerRecord"
    )
    CONTROLLED_SHUTDOWN_STATE = _from(7, "the registration has the state of a broker in controlled shutdown (KIP-841)")
    ZK_MIGRATION = _from(8, "registrations of brokers that migrate from ZooKeeper (KIP-866)")
    SCRAM = _from(11, "SCRAM credentials (KIP-900)")
    METADATA_TRANSACTIONS = _from(13, "transactions of metadata records (KIP-868)")
    DELEGATION_TOKENS = _from(14, "delegation tokens (KAFKA-15219)")
    CONTROLLER_REGISTRATION = _from(15, "controllers register (KIP-919)")
    DIRECTORY_ASSIGNMENT = _from(17, "replicas have log directories (KIP-858)")
    ELR_RECORDS = _from(23, "partitions have eligible leader replicas in snapshots (KIP-966)")
    CORDONED_LOG_DIRS = Row(
        "log directories can be cordoned; to the text setting cordoned.log.dirs is enough (KIP-1066)",
        levels=Levels(METADATA_VERSION, 30),
        proposal="kip-1066",
        otherwise="it needs metadata.version 4.3-IV0",
    )
    ACL_RANGES = _from(32, "ACLs of ranges of addresses (KIP-1276)")
    CONTROLLER_UNREGISTRATION = _from(33, "controllers can be unregistered")
    CONSUMER_PROTOCOL = Row("groups of the consumer protocol (KIP-848)", levels=Levels(GROUP_VERSION, 1))
    SHARE_GROUPS = Row("share groups (KIP-932)", levels=Levels(SHARE_VERSION, 1))
    ELR = Row("eligible leader replicas (KIP-966)", levels=Levels(ELR_VERSION, 1))
    DYNAMIC_VOTERS = Row(
        "voters are records of the log, and can be added and removed (KIP-853)", levels=Levels(KRAFT_VERSION, 1)
    )

    UNASSIGNED_DIR_IS_ZERO = _kip_858(
        "the default value for Directory is Uuid.UNASSIGNED_DIR (Uuid.ZERO)",
        "UNASSIGNED is uuid 1, and uuid 0 is MIGRATING",
    )
    NEW_REPLICAS_ARE_UNASSIGNED = _kip_858(
        "For any new partitions, the active controller will use Uuid.UNASSIGNED_DIR as the initial value for log "
        "directory UUID for each replica",
        "the only directory of a broker that has one; MIGRATING on a broker that reported none",
    )
    CHANGES_CONTAIN_ALL_DIRECTORIES = _kip_858(
        "PartitionRecord and PartitionChangeRecord will both have a new Directories field",
        "in PartitionChangeRecord it is tagged, and null while directories stay as they are",
    )
    UNKNOWN_OFFLINE_DIR_FAILS_THE_HEARTBEAT = _kip_858(
        "If the any of the listed log directory UUIDs is not a registered log directory then the call fails with error "
        "57 — LOG_DIR_NOT_FOUND",
        "it is ignored",
    )
    BROKERS_WAIT_FOR_THEIR_ASSIGNMENTS = _kip_858(
        "Brokers whose registration indicates that multiple log directories are configured remain FENCED until all log "
        "directory assignments for that broker are learnt by the active controller",
        "neither the controller nor the broker waits",
    )
    REGISTRATION_CONTAINS_CORDONED_DIRS = _kip_1066(
        "the broker will include the Uuids of cordoned log directories when it registers to the controller",
        "only heartbeats tell them; a registration forgets them",
    )
    CORDONED_DIRS_ARE_ALWAYS_REPORTED = _kip_1066(
        "records have CordonedLogDirs as a list that is never null", "null is: not known yet, or no change"
    )
    DEFAULT_DIR_IS_NOT_CORDONED = _kip_1066(
        "defaultDir(): This method will return the Uuid of a log directory that is not cordoned",
        "it does not look at cordoned directories: the only one of a broker, else UNASSIGNED",
    )
    NO_ASSIGNMENT_TO_CORDONED_BROKERS = _kip_1066(
        "if any of the specified brokers don't have uncordoned log directories, the INVALID_REPLICA_ASSIGNMENT error "
        "will be returned",
        "an explicit assignment is accepted before 4.4",
    )
    NO_REASSIGNMENT_TO_CORDONED_BROKERS = _kip_1066(
        "if the request places partitions on brokers with no uncordoned log directories, the INELIGIBLE_REPLICA will "
        "be returned",
        "the reassignment is accepted before 4.4; from then on INVALID_REPLICA_ASSIGNMENT",
    )
    CORDONED_CONFIG_IS_A_STRING = _kip_1066("cordoned.log.dirs: Type: string", "it is a LIST")
    CORDONED_CONFIG_MAY_GROW_ANYWHERE = _kip_1066(
        "This can be … updated at runtime via the Admin client (no other rule for controllers is mentioned)",
        "sent to a controller, the new value must be a subset of the current one",
    )

    @property
    def row(self) -> Row:
        """The rule and its conditions."""
        row: Row = self.value
        return row

    @property
    def since(self) -> str:
        """The first releases with it ("4.2.2 and 4.4"); empty if it depends on something else."""
        return " and ".join((*self.row.backports, self.row.since))

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        return self.row.rule


@cache
def present(
    kafka_version: str = "", levels: tuple[tuple[str, int], ...] = (), proposals: frozenset[str] = frozenset()
) -> frozenset[Behaviour]:
    """Return what controllers of a Kafka version have at these levels of features, with these proposals."""
    return frozenset(each for each in Behaviour if each.row.is_met(kafka_version, dict(levels), proposals))
