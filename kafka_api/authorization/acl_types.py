"""Types of ACLs, by Kafka's numbers (org.apache.kafka.common.acl and common.resource)."""

from enum import IntEnum
from typing import Final

from mockraft.wire import error_codes

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

WILDCARD: Final = "*"
"""Any host; as the name of a literal pattern any resource."""


class ResourceType(IntEnum):
    """ResourceType: ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """PatternType: ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """AclOperation: ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """AclPermissionType: ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


DENIED: Final = {
    ResourceType.TOPIC: error_codes.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: error_codes.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: error_codes.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The code for a client that may not do what it requests, by the type of the resource."""

_CONFIGS: Final = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""The resource whose configs have an ACL of their own, by ConfigResource.Type."""


def resource_of_configs(config_type: int, name: str) -> tuple[ResourceType, str]:
    """Return the resource that controls access to configs: the topic or group, else the cluster."""
    resource_type = _CONFIGS.get(config_type)
    return (ResourceType.CLUSTER, CLUSTER_NAME) if resource_type is None else (resource_type, name)
