"""SCRAM credentials: requested changes, and their records (ScramControlManager, KIP-554, KIP-900)."""

import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from mockraft.releases import Behaviour
from mockraft.server.controller.result import RECORDS_PER_BATCH_MAX, ApiError, ControllerResult
from mockraft.wire import error_codes, scram
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from mockraft.wire.records.user_scram_credential_record import UserScramCredentialRecord

if TYPE_CHECKING:
    from mockraft.server.controller.image import Image

HASHES: Final[Mapping[int, str]] = dict(enumerate(scram.HASHES.values(), 1))
"""Hash function by mechanism: 1 is SCRAM-SHA-256, 2 SCRAM-SHA-512."""


class Deletion(NamedTuple):
    """Deletion of a user's credential of one mechanism."""

    user: str
    mechanism: int


class Upsertion(NamedTuple):
    """New credential of a user for one mechanism; the password was salted and iterated by the client (RFC 5802)."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Alteration = Deletion | Upsertion

T = TypeVar("T")


class _HashMap(Generic[T]):
    """A map that iterates like a java.util.HashMap after removals: its table does not shrink."""

    def __init__(self) -> None:
        self.entries: dict[str, T] = {}
        self._most = 0

    def put(self, key: str, value: T) -> None:
        self.entries[key] = value
        self._most = max(self._most, len(self.entries))

    def in_order(self) -> list[tuple[str, T]]:
        return in_hash_map_order(self.entries, max(16, -(-self._most * 4 // 3)))


def alter_credentials(
    image: "Image", deletions: Sequence[Deletion], upsertions: Sequence[Upsertion]
) -> ControllerResult[dict[str, ApiError | None]]:
    """Return, by user in Kafka's order, None for an altered credential, else the error.

    A user may be named once: a user named twice is not altered at all. Valid alterations are made, whatever the result
    of the others. ApiError UNKNOWN_SERVER_ERROR for all of them when they are too much for one batch.
    """
    removals, changes = _HashMap[Deletion](), _HashMap[Upsertion]()
    refused: dict[str, ApiError] = {}
    alterations: list[Alteration] = [*deletions, *upsertions]
    for alteration in alterations:
        user = alteration.user
        if user in refused:
            continue
        if removals.entries.pop(user, None) or changes.entries.pop(user, None):
            refused[user] = ApiError(
                error_codes.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
        elif refusal := _refusal(image, alteration):
            refused[user] = refusal.kept()
        elif isinstance(alteration, Deletion):
            removals.put(user, alteration)
        else:
            changes.put(user, alteration)
    records: list[RecordAt] = []
    done: dict[str, ApiError | None] = {}
    for user, deletion in removals.in_order():
        records.append(RecordAt(RemoveUserScramCredentialRecord(name=user, mechanism=deletion.mechanism), 0))
        done[user] = None
    for user, upsertion in changes.in_order():
        if upsertion.salted_password:
            records.append(RecordAt(_credential(upsertion), 0))
            done[user] = None
        else:
            refused[user] = ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    if len(records) > RECORDS_PER_BATCH_MAX:  # Kafka's list of them has no bound: writing it fails
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR)
    return ControllerResult(records, {**done, **dict(in_hash_map_order(refused))}, "SCRAM credentials altered")


def _refusal(image: "Image", alteration: Alteration) -> ApiError | None:
    if not image.has(Behaviour.SCRAM):
        return ApiError(error_codes.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not alteration.user:
        return ApiError(error_codes.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in HASHES:
        return ApiError(error_codes.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(alteration, Deletion):
        if (alteration.mechanism, alteration.user) not in image.security.scram:
            return ApiError(error_codes.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    elif alteration.iterations < scram.ITERATIONS_MIN:
        return ApiError(error_codes.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    elif alteration.iterations > scram.ITERATIONS_MAX:
        return ApiError(error_codes.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None


def record_of(user: scram.ScramUser, directory_id: bytes) -> RecordAt:
    """Return the record that `kafka-storage format --add-scram` writes for a user (ScramParser).

    The salt is derived from the log's directory id, which is random for each log, so no two logs or users share one.
    """
    salt = hmac.digest(directory_id, f"{user.mechanism},{user.name}".encode(), "sha256")
    salted = scram.salted_password(scram.HASHES[user.mechanism], user.password, salt, user.iterations)
    return RecordAt(_credential(Upsertion(user.name, scram.NUMBERS[user.mechanism], user.iterations, salt, salted)), 0)


def _credential(upsertion: Upsertion) -> UserScramCredentialRecord:
    """Derive the server's stored values from the salted password (ScramFormatter, RFC 5802 section 3)."""
    hash_name = HASHES[upsertion.mechanism]
    return UserScramCredentialRecord(
        name=upsertion.user,
        mechanism=upsertion.mechanism,
        salt=upsertion.salt,
        stored_key=scram.stored_key(hash_name, scram.client_key(hash_name, upsertion.salted_password)),
        server_key=scram.server_key(hash_name, upsertion.salted_password),
        iterations=upsertion.iterations,
    )
