"""Rules of Kafka's controller that came with a release and do not depend on a metadata.version."""

from __future__ import annotations

from enum import Enum


class Behaviour(Enum):
    """One rule: the first release whose controllers follow it, and the rule.

    Found by running the conformance suite on each release's own controller; the classes are those that have the rule.
    """

    EPOCH_IS_KEPT = "3.9", "the same incarnation registers again with its broker epoch (ClusterControlManager)"
    METADATA_TOPIC_IS_INVALID = (
        "3.9",
        "__cluster_metadata is an invalid topic, not an unauthorized one",
    )
    PARTITION_COUNT_IS_NAMED = "3.9", "CreateTopics refuses the partitions of a request by their number"
    UNCLEAN_ELECTIONS_BY_CONFIG = "3.9", "unclean.leader.election.enable is followed (ReplicationControlManager)"
    UNKNOWN_FEATURES_ARE_CHECKED = "3.8", "a broker that needs a level of an unknown feature may not register"
    FENCED_BROKERS_KEEP_THEIR_SESSION = "4.0", "heartbeats of a fenced broker keep its session (BrokerHeartbeatManager)"
    MISSING_METADATA_VERSION_IS_INVALID = "4.0", "a registration without metadata.version is INVALID_REGISTRATION"
    FEATURES_FAIL_TOGETHER = "4.0", "one bad feature has the others of the request refused, too (FeatureControlManager)"
    CLIENT_METRICS_ARE_PARSED = "4.0", "client metrics are parsed as all configs are (ClientMetricsConfigs)"
    GROUPS_HAVE_CONFIGS = "4.0", "resources of type GROUP have configs (GroupConfig)"
    DIRECTORY_IDS_ARE_PLAIN = "4.0", "directory ids of voters are not shown as Optional[id] (ReplicaKey)"
    KRAFT_VERSION_RECORDS_ARE_NOT_READ = "4.0", "updates of kraft.version are checked as if it were at level 0"
    STREAMS_VERSION_IS_KNOWN = "4.1", "UpdateFeatures accepts streams.version 0, though 4.1 has no level above it"
    KRAFT_VERSION_STAYS = "4.1", "kraft.version cannot be downgraded (FeatureControlManager)"
    UNKNOWN_BROKER_IS_NAMED = "4.1", "UnregisterBroker names the broker that is not registered"
    REMOTE_STORAGE_NEEDS_DELETE_POLICY = "4.1", "remote storage needs cleanup.policy=delete (LogConfig)"
    CLIENT_METRICS_HAVE_DEFAULTS = "4.1", "DescribeConfigs has the defaults of client metrics (ConfigHelper)"
    CLEANUP_POLICY_MAY_BE_EMPTY = "4.2", "cleanup.policy may be empty, with remote storage too (KIP-1161, LogConfig)"
    DOWNGRADE_NAMES_BOTH_LEVELS = "4.2", "a refused downgrade of metadata.version names the present level"
    CORDONING = "4.3", "cordoned.log.dirs is a known key, and a refused placement names it (KIP-1066)"
    GROUP_SYNONYMS_ARE_THE_BROKERS = "4.3", "the synonym of a group's default is the broker's key (GroupConfig)"
    CONTROLLERS_ARE_NODES = "4.3", "a controller of a dynamic quorum has configs by its id (FeatureControlManager)"
    ADDED_PARTITIONS_ARE_COUNTED = "4.4", "CreatePartitions refuses the partitions of a request by their number"
    ACL_HOSTS_ARE_RANGES = "4.4", "hosts of ACLs are checked, and may be ranges of addresses (KIP-1276, CidrUtils)"
    GROUP_BOUNDS_ARE_NUMBERS = "4.4", "a refused group config names its bounds, not their keys (GroupConfig)"
    LOGGER_OPERATIONS_ARE_NAMED = "4.4", "an unknown operation on a broker logger is INVALID_REQUEST"
    QUOTAS_ARE_FINITE = "4.4", "infinite client quotas are refused (ClientQuotaControlManager)"
    CORDONED_BROKERS_GET_NO_REPLICAS = "4.4", "assignments that name a wholly cordoned broker are refused (KAFKA-20441)"

    @property
    def since(self) -> str:
        """The first release."""
        return self.value[0]

    @property
    def rule(self) -> str:
        """The rule as a sentence."""
        return self.value[1]
