"""InitProducerId (22): KIP-98, KIP-730 (blocks of ids from the controller). For idempotent producers only.

A transactional id is refused: there is no transaction coordinator here.
"""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, RequestContext
from mockraft.brokers.apis.leaders import replicas_of
from mockraft.brokers.channel import NotSentError
from mockraft.brokers.partitions.producer_ids import ProducerIdsError
from mockraft.wire import client, error_codes
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.init_producer_id_response import InitProducerIdResponse

VERSION_MAX = 5
"""Version 6 is not stable in 4.3.1."""


async def handle(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse:
    """Return a new producer id with epoch 0."""
    if request.transactional_id is not None:
        return error(request, error_codes.INVALID_REQUEST, None)
    try:
        producer_id = await replicas_of(ctx).producer_ids.next_id()
    except (NotSentError, ProducerIdsError, client.UnsupportedVersionError):
        return error(request, error_codes.COORDINATOR_LOAD_IN_PROGRESS, None)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def error(_request: InitProducerIdRequest, error_code: int, _message: str | None) -> InitProducerIdResponse:
    """Return the error without an id."""
    return InitProducerIdResponse(error_code=error_code, producer_id=-1, producer_epoch=-1)


API = Api(InitProducerIdRequest, InitProducerIdResponse, handle, error, max_version=VERSION_MAX)
