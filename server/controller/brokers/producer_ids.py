"""Blocks of producer ids for brokers (Kafka's ProducerIdControlManager)."""

from typing import TYPE_CHECKING, Final

from mockraft.server.controller.result import ApiError, ControllerResult
from mockraft.wire import error_codes
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.producer_ids_record import ProducerIdsRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

BLOCK_SIZE: Final = 1000

_INT64_MAX: Final = (1 << 63) - 1


def allocate_block(controller: "ControllerContext", broker_id: int, broker_epoch: int) -> ControllerResult[int]:
    """Return the first id of the broker's new block of BLOCK_SIZE ids.

    ApiError STALE_BROKER_EPOCH for a broker that is not registered at this epoch, UNKNOWN_SERVER_ERROR when no block
    is left.
    """
    controller.check_broker_epoch(broker_id, broker_epoch)
    first = max(0, controller.image.settings.next_producer_id)
    if first > _INT64_MAX - BLOCK_SIZE:
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=first + BLOCK_SIZE)
    return ControllerResult([RecordAt(record, 0)], first, f"broker {broker_id} got producer ids from {first}")
