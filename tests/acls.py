"""ACLs to create."""

from typing import Any

from mockraft.kafka_api.authorization.acl_types import AclOperation, PatternType, PermissionType, ResourceType
from mockraft.wire.messages.create_acls_request import AclCreation


def creation(**fields: Any) -> AclCreation:
    """An ACL that lets alice read the topic `orders` from anywhere; `fields` replace parts of it."""
    defaults: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": PermissionType.ALLOW,
    }
    return AclCreation(**defaults | fields)
