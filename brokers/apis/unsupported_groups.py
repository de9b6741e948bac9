"""APIs of streams groups, which simulated brokers do not coordinate.

They answer at once as a broker whose cluster has not enabled these groups, and the log and the journal say why.
"""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis.api import AnyApi, Api, ApiError, RequestContext
from mockraft.kafka_api.error_responses import Items, error_for_each
from mockraft.wire import error_codes, messages
from mockraft.wire.message import Message


def _refused(name: str, *levels: Items) -> AnyApi:
    """Return the API of this name."""
    response = messages.by_name(f"{name}Response")

    def handle(_body: Message, ctx: RequestContext) -> Message:
        ctx.remark = f"{name}: simulated brokers have no streams groups"
        raise ApiError(error_codes.UNSUPPORTED_VERSION)

    api: AnyApi = Api(messages.by_name(f"{name}Request"), response, handle, error_for_each(response, *levels))
    return api


APIS: Final[tuple[AnyApi, ...]] = (
    _refused("StreamsGroupHeartbeat"),
    _refused("StreamsGroupDescribe", Items("group_ids", "groups", ("group_id",))),
    _refused("StreamsGroupTopologyDescriptionUpdate"),
)
