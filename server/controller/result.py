"""Result of a controller operation (Kafka's ControllerResult), and its refusal."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Generic, TypedDict, TypeVar

from mockraft.wire import error_codes
from mockraft.wire.errors import ApiError as ApiError
from mockraft.wire.metadata_log_frame import RecordAt

T = TypeVar("T")

RECORDS_PER_BATCH_MAX = 10_000


@dataclass(slots=True)
class ControllerResult(Generic[T]):
    """Records to write, and the response to send once they are.

    `atomic` results go into one batch or are refused; others may be split, in order. `reason` explains in one line why
    the records are written.
    """

    records: list[RecordAt]
    response: T
    reason: str = ""
    atomic: bool = True


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
