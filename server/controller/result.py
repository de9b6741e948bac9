"""Result of a controller operation (Kafka's ControllerResult), and its refusal."""

from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar

from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError as ApiError
from mockraft.wire.metadata_log_frame import RecordAt

T = TypeVar("T")

RECORDS_PER_BATCH_MAX = 10_000


@dataclass(slots=True)
class Steps:
    """The rest of the fencing of a broker of many partitions, between whose steps other requests are answered.

    Kafka makes such a change in one turn, but not atomically either: it writes batches of 10,000 records. Each element
    of `records` is one step, generated from the state of its time, and whether it is the last. It ends without a last
    one if the change is no longer wanted. A heartbeat of the broker itself waits for all steps.
    """

    broker_id: int
    records: Iterator[tuple[list[RecordAt], bool]]
    reason: str = ""
    cause: str | None = None
    waiting: tuple[list[RecordAt], bool] | None = None
    """A step of which nothing could be written; it is tried again."""


@dataclass(slots=True)
class ControllerResult(Generic[T]):
    """Records to write, and the response to send once they are.

    `atomic` results go into one batch or are refused; others may be split, in order. `reason` explains in one line why
    the records are written, `cause` is what caused that, where it is not the end of `reason`.
    `rest` are further records.
    """

    records: list[RecordAt]
    response: T
    reason: str = ""
    atomic: bool = True
    cause: str | None = None
    rest: Steps | None = None


def check_fits_one_batch(records: Sized) -> None:
    """Raise ApiError POLICY_VIOLATION for more records than one batch may have (BoundedListTooLongException)."""
    if len(records) > RECORDS_PER_BATCH_MAX:
        raise ApiError(error_codes.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class ErrorFields(TypedDict):
    """The fields of a response's part that report a refusal."""

    error_code: int
    error_message: str | None


def error_fields(refusal: ApiError | None) -> ErrorFields:
    """Return the code and message of a refusal; NONE and null if there is none."""
    if refusal is None:
        return {"error_code": error_codes.NONE, "error_message": None}
    return {"error_code": refusal.error_code, "error_message": refusal.message}


def invalid_request(message: str) -> ApiError:
    """Return an INVALID_REQUEST error."""
    return ApiError(error_codes.INVALID_REQUEST, message)
