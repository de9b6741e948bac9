"""Classes of fields whose values differ between runs, and the class of every field of Kafka's messages.

A field of a class is *renamed* (captured and live values are paired), *masked* (not compared at all), or unordered. A
field without a class is compared as it is. The class follows from a field's type and name, so new messages are
classified as soon as their schema exists; `rules` makes the list, and a rules file may override it.
"""

from __future__ import annotations

from mockraft.spark_replay.endpoints import RAFT_APIS
from mockraft.wire import api_keys, error_codes
from mockraft.wire.schema_files import FieldSpec

COMPARED = "compared"
IGNORED = "ignored"
ANY_ORDER = "any order"

THROTTLE, TIME, ERROR_TEXT = "throttle", "time", "error text"
MASKED = {
    THROTTLE: "throttle time of a quota",
    TIME: "a point in time",
    ERROR_TEXT: "text for people",
    IGNORED: "ignored by the rules file",
}
"""Classes that are not compared, and why."""

ONE_TO_ONE = (
    "cluster id",
    "broker epoch",
    "topic id",
    "directory id",
    "incarnation id",
    "producer id",
    "session id",
    "member id",
    "uuid",
    "token id",
    "token hmac",
)
"""Classes whose captured and live values are paired one to one over the whole run."""
CLUSTER_ID, BROKER_EPOCH, TOPIC_ID, DIRECTORY_ID, INCARNATION_ID, PRODUCER_ID = ONE_TO_ONE[:6]
SESSION_ID, MEMBER_ID, UUID, TOKEN_ID, TOKEN_HMAC = ONE_TO_ONE[6:]

QUORUM_EPOCH, HOST, PORT, LOG_OFFSET, LOG_BYTES = "quorum epoch", "host", "port", "log offset", "log bytes"
QUORUM_ERROR = "quorum error"
ELECTION_ERRORS = (
    error_codes.NOT_LEADER_OR_FOLLOWER,
    error_codes.FENCED_LEADER_EPOCH,
    error_codes.UNKNOWN_LEADER_EPOCH,
)
"""Codes of class quorum error that a capture has because of an election, which need not happen again."""

MANY_TO_ONE = {
    QUORUM_EPOCH: "captured elections may not happen again, so several captured epochs may be one live epoch",
    HOST: "several captured controllers may be one live controller",
    PORT: "several captured controllers may be one live controller",
}
"""Classes in which a captured value has one live partner, but not vice versa, and why."""

ONLY_WHETHER = {
    LOG_OFFSET: "two controllers write different NoOpRecords in between, so only the presence of an offset is compared",
    LOG_BYTES: "two controllers cut the log into different batches, so only the presence of a log is compared",
}
"""Classes compared only as null, -1 or a value, and why."""

CLASSES = frozenset({COMPARED, ANY_ORDER, QUORUM_ERROR, *MASKED, *ONE_TO_ONE, *MANY_TO_ONE, *ONLY_WHETHER})
"""All classes, as named in a rules file."""

REASONS = {
    **MASKED,
    **dict.fromkeys(ONE_TO_ONE, "given out by a controller: captured and live values are paired one to one"),
    **MANY_TO_ONE,
    **ONLY_WHETHER,
    ANY_ORDER: "made from a hash map by Kafka: elements are matched by name or number",
    QUORUM_ERROR: "the capture has an election of controllers, or a restart, that the live quorum did not have",
    COMPARED: "follows from another error code in the same place, which counts",
}
"""Why differences of a field of a class are no changes; of class compared, those beside another error code."""

FIXED = (None, -1, 0, "", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ")
"""Values that are never renamed: no value, and reserved ids (UNASSIGNED, the metadata topic)."""

_BY_NAME = {
    "throttleTimeMs": THROTTLE,
    "errorMessage": ERROR_TEXT,
    "clusterId": CLUSTER_ID,
    "brokerEpoch": BROKER_EPOCH,
    "previousBrokerEpoch": BROKER_EPOCH,
    "producerIdStart": PRODUCER_ID,
    "producerId": PRODUCER_ID,
    "sessionId": SESSION_ID,
    "memberId": MEMBER_ID,
    "tokenId": TOKEN_ID,
    "hmac": TOKEN_HMAC,
    "finalizedFeaturesEpoch": LOG_OFFSET,
}
_OF_THE_QUORUM = {
    **dict.fromkeys(("leaderEpoch", "currentLeaderEpoch", "lastFetchedEpoch", "lastEpoch"), QUORUM_EPOCH),
    **dict.fromkeys(("highWatermark", "lastStableOffset", "logStartOffset", "logEndOffset", "lastOffset"), LOG_OFFSET),
    **dict.fromkeys(("divergingEpoch", "snapshotId", "size", "position"), LOG_OFFSET),
    "unalignedRecords": LOG_BYTES,
}
_OF_ENDPOINTS = {"host": HOST, "port": PORT}
_ENDPOINTS = ("nodeEndpoints", "listeners", "brokers")


def class_of(field: FieldSpec, parent: str, api_key: int, *, is_request: bool) -> str:
    """Return the class of a field of an API's request or response; `parent` is the enclosing field, or empty."""
    name = field.json_name
    found = _BY_NAME.get(name)
    if found is None and api_key in RAFT_APIS:
        found = _OF_THE_QUORUM.get(name)
    if found is None and api_key in RAFT_APIS and (parent, name, is_request) == ("partitions", "errorCode", False):
        found = QUORUM_ERROR
    if found is None and parent in _ENDPOINTS and not is_request:
        found = _OF_ENDPOINTS.get(name)
    if found is None and field.kind == "records":
        found = LOG_BYTES
    if found is None and field.kind == "uuid":
        found = _class_of_uuid(name)
    if found is None and field.kind == "int64" and name.endswith(("Timestamp", "TimestampMs", "TimeMs")):
        found = TIME
    if is_request and found in (*MASKED, *ONLY_WHETHER, HOST, PORT):
        return COMPARED
    return found or COMPARED


def _class_of_uuid(name: str) -> str:
    lowered = name.lower()
    if lowered in ("topicid", "topicids"):
        return TOPIC_ID
    if lowered == "incarnationid":
        return INCARNATION_ID
    return DIRECTORY_ID if "dir" in lowered else UUID


VOLATILE_IN_REQUESTS = frozenset(
    {
        *(name for name, found in _BY_NAME.items() if found in ONE_TO_ONE),
        *(name for name in _OF_THE_QUORUM if name != "lastOffset"),
        *("topicId", "topicIds", "incarnationId", "directoryId", "replicaDirectoryId", "voterDirectoryId"),
        *("logDirs", "offlineLogDirs", "cordonedLogDirs", "directories", "topicsData"),
        *("partitionEpoch", "fetchOffset", "currentMetadataOffset", "timeoutMs", "maxWaitMs"),
        *("requestData", "requestPrincipal", "clientHostAddress", "port"),
        "features",  # in the order of a Java HashMap
    }
)


def is_volatile(field: str) -> bool:
    """Return True if a request field differs between two runs of the same workload."""
    return field in VOLATILE_IN_REQUESTS or field.endswith(("TimestampMs", "Timestamp"))


NOT_SENT = {
    api_keys.VOTE: "between controllers",
    api_keys.BEGIN_QUORUM_EPOCH: "between controllers",
    api_keys.END_QUORUM_EPOCH: "between controllers",
    api_keys.CONTROLLER_REGISTRATION: "between controllers",
    api_keys.SASL_HANDSHAKE: "authenticate with --command-config",
    api_keys.SASL_AUTHENTICATE: "authenticate with --command-config",
}
"""APIs left out of a replay, and why."""
