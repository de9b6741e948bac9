"""Producer ids from blocks that the controller allocates to this broker (Kafka's `RPCProducerIdManager`, KIP-730)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError
from mockraft.wire.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from mockraft.wire.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

_Answered = Callable[[AllocateProducerIdsResponse | ApiError], None]

_log = logging.getLogger(__name__)


class ProducerIds:
    """Returns each id once. At most one request for a block is in flight, however many callers wait for it.

    `send` sends a request to the controller and calls back with its response, or with the reason for none.
    """

    def __init__(
        self,
        send: Callable[[AllocateProducerIdsRequest, _Answered], None],
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._send = send
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._block = iter(range(0))
        self._waiting: deque[Callable[[int | None], None]] = deque()

    def next_id(self, answered: Callable[[int | None], None]) -> None:
        """Call back with an unused id, or with None when the controller allocates none."""
        self._waiting.append(answered)
        if len(self._waiting) == 1:
            self._serve()

    def _serve(self) -> None:
        """Give ids to the waiting callers; request a block when there are too few."""
        while self._waiting:
            producer_id = next(self._block, None)
            if producer_id is None:
                request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
                self._send(request, self._allocated)
                return
            self._waiting.popleft()(producer_id)

    def _allocated(self, answer: AllocateProducerIdsResponse | ApiError) -> None:
        if isinstance(answer, ApiError) or answer.error_code != error_codes.NONE or answer.producer_id_len <= 0:
            _log.warning("no producer ids were allocated: %s", error_codes.name(answer.error_code))
            self._waiting.popleft()(None)
        else:
            self._block = iter(range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len))
        self._serve()
