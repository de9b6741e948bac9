"""InitProducerId (22): KIP-98, KIP-730 (blocks of ids from the controller). For idempotent producers only.

A transactional id is refused: there is no transaction coordinator here.
"""

from __future__ import annotations

from mockraft.brokers.apis.api import Api, Parked, RequestContext
from mockraft.serving.parked import NEVER_MS
from mockraft.wire import error_codes
from mockraft.wire.messages.init_producer_id_request import InitProducerIdRequest
from mockraft.wire.messages.init_producer_id_response import InitProducerIdResponse

VERSION_MAX = 5
"""Version 6 is not stable in 4.3.1."""


def handle(
    request: InitProducerIdRequest, ctx: RequestContext
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    """Return a new producer id with epoch 0."""
    if request.transactional_id is not None:
        return error(request, error_codes.INVALID_REQUEST, None)
    answers: list[int | None] = []
    ctx.broker.producer_ids.next_id(answers.append)

    def retry(_now_ms: int, expired: bool) -> InitProducerIdResponse | None:
        if not answers and not expired:
            return None
        producer_id = answers[0] if answers else None
        if producer_id is None:
            return error(request, error_codes.COORDINATOR_LOAD_IN_PROGRESS, None)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    return retry(ctx.now_ms, False) or Parked(NEVER_MS, retry)


def error(_request: InitProducerIdRequest, error_code: int, _message: str | None) -> InitProducerIdResponse:
    """Return the error without an id."""
    return InitProducerIdResponse(error_code=error_code, producer_id=-1, producer_epoch=-1)


API = Api(InitProducerIdRequest, InitProducerIdResponse, handle, error, max_version=VERSION_MAX)
