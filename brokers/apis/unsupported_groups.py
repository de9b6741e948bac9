"""APIs of share groups and streams groups, which simulated brokers do not coordinate.

They answer at once as a broker whose cluster has not enabled these groups, and the log and the journal say why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mockraft.brokers.apis.api import AnyApi, Api, Need, RequestContext
from mockraft.kafka_api.api import error_code_only, error_with_default_message
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message

Form = Callable[[Message, int, str | None], Message]

_OF_BROKERS: Final = (Need(AclOperation.CLUSTER_ACTION),)
_GROUPS: Final = Items("group_ids", "groups", ("group_id",))
_STATES: Final = (Items("topics", "results", ("topic_id",)), Items("partitions", "partitions", ("partition",)))


def _refused(
    kind: str,
    name: str,
    form: Callable[..., Form] = error_code_only,
    *levels: Items,
    code: int = error_codes.UNSUPPORTED_VERSION,
    needs: tuple[Need, ...] = (),
) -> AnyApi:
    """Return the API of this name of a kind of groups."""
    response = messages.by_name(f"{name}Response")
    error: Form = error_for_each(response, *levels) if levels else form(response)

    def handle(body: Message, ctx: RequestContext) -> Message:
        ctx.remark = f"{name}: simulated brokers have no {kind} groups"
        return error(body, code, None)

    api: AnyApi = Api(messages.by_name(f"{name}Request"), response, handle, error, needs=needs)
    return api


APIS: Final[tuple[AnyApi, ...]] = (
    _refused("share", "ShareGroupHeartbeat"),
    _refused("share", "ShareGroupDescribe", error_code_only, _GROUPS),
    _refused("share", "ShareFetch"),
    _refused("share", "ShareAcknowledge"),
    _refused("share", "DescribeShareGroupOffsets", error_code_only, Items("groups", "groups", ("group_id",))),
    _refused("share", "AlterShareGroupOffsets", error_with_default_message),
    _refused("share", "DeleteShareGroupOffsets", error_with_default_message),
    *(
        _refused("share", name, error_code_only, *_STATES, code=error_codes.NOT_COORDINATOR, needs=_OF_BROKERS)
        for name in (
            "InitializeShareGroupState",
            "ReadShareGroupState",
            "WriteShareGroupState",
            "DeleteShareGroupState",
            "ReadShareGroupStateSummary",
        )
    ),
    _refused("streams", "StreamsGroupHeartbeat"),
    _refused("streams", "StreamsGroupDescribe", error_code_only, _GROUPS),
    _refused("streams", "StreamsGroupTopologyDescriptionUpdate"),
)
