"""Operations on a resource as the bits of `authorizedOperations` (AclEntry.supportedOperations, KIP-430)."""

from collections.abc import Iterable
from typing import Final

from mockraft.brokers.apis.api import RequestContext
from mockraft.kafka_api.authorization.acl_types import CLUSTER_NAME, AclOperation, ResourceType
from mockraft.wire import error_codes
from mockraft.wire.messages.consumer_group_describe_response import DescribedGroup as ConsumerGroup
from mockraft.wire.messages.describe_groups_response import DescribedGroup as ClassicGroup
from mockraft.wire.messages.share_group_describe_response import DescribedGroup as ShareGroup

_CONFIGS: Final = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
_ON_TOPIC: Final = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    *_CONFIGS,
)
_ON_GROUP: Final = (AclOperation.READ, AclOperation.DELETE, *_CONFIGS)
_ON_CLUSTER: Final = (
    AclOperation.CREATE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.IDEMPOTENT_WRITE,
    AclOperation.ALTER,
    *_CONFIGS,
)


def on_topic(ctx: RequestContext, name: str) -> int:
    """Return what the client may do with a topic."""
    return _bits(ctx, _ON_TOPIC, ResourceType.TOPIC, name)


def add_to_groups(ctx: RequestContext, groups: Iterable[ClassicGroup | ConsumerGroup | ShareGroup]) -> None:
    """Add what the client may do with groups to their descriptions, except where there is an error."""
    for group in groups:
        if group.error_code == error_codes.NONE:
            group.authorized_operations = _bits(ctx, _ON_GROUP, ResourceType.GROUP, group.group_id)


def on_cluster(ctx: RequestContext) -> int:
    """Return what the client may do with the cluster, to a client that may describe it."""
    may_describe = ctx.may(AclOperation.DESCRIBE, ResourceType.CLUSTER)
    return _bits(ctx, _ON_CLUSTER, ResourceType.CLUSTER, CLUSTER_NAME) if may_describe else 0


def _bits(ctx: RequestContext, operations: Iterable[AclOperation], resource_type: ResourceType, name: str) -> int:
    return sum(1 << each for each in operations if ctx.may(each, resource_type, name))
