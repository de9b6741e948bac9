"""Client quotas: possible limits per entity, and the records that change them (ClientQuotaControlManager, KIP-546).

Host names are not resolved: an ip is an address or `localhost`.
"""

import ipaddress
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from mockraft.releases import Behaviour
from mockraft.server.controller.result import ApiError, ControllerResult, check_fits_one_batch, invalid_request
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.client_quota_record import ClientQuotaRecord, EntityData

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_USER_AND_CLIENT_KEYS: Final = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_IP_KEYS: Final = {"connection_creation_rate": "INT"}
KEYS: Final = frozenset((*_USER_AND_CLIENT_KEYS, *_IP_KEYS))
"""Names of all limits."""
_LARGEST: Final = {"INT": float((1 << 31) - 1), "LONG": float((1 << 63) - 1)}
_FRACTION_MAX: Final = 1e-6
_IPV4_LENGTH_MAX: Final = 15

Entity = Mapping[str, str | None]
"""Name by entity type, None for the default entity of the type; made by `entity_of`."""


class Alteration(NamedTuple):
    """Alterations of one entity: (key, value) pairs in their order, None to remove the key."""

    entity: Entity
    changes: Sequence[tuple[str, float | None]]


class Altered(NamedTuple):
    """Result for one entity; None is success."""

    entity: Entity
    refusal: ApiError | None


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """Return an entity with its types in the order of Kafka's map."""
    entity = dict(parts)
    return dict(in_hash_map_order(entity, len(entity)))


def alter_client_quotas(
    controller: "ControllerContext", alterations: Sequence[Alteration]
) -> ControllerResult[list[Altered]]:
    """Generate the changes of every valid entity in one batch, and a result for each different entity.

    An entity named twice is refused, but the changes of its first entry are written, as Kafka does.
    """
    records: list[RecordAt] = []
    results: dict[frozenset[tuple[str, str | None]], Altered] = {}
    for entity, changes in alterations:
        found = frozenset(entity.items())
        values = dict(changes)
        try:
            # A duplicate key gets the same message: Kafka has recorded it as a result of this entity by then.
            if found in results or len(values) < len(changes):
                raise invalid_request(f"Ignoring duplicate entity {_entity_text(entity)}")
            records += _alter_entity(controller, entity, values)
            results[found] = Altered(entity, None)
        except ApiError as refusal:
            results[found] = Altered(entity, refusal.kept())
    check_fits_one_batch(records)
    return ControllerResult(records, list(results.values()), "client quotas altered" if records else "")


def _alter_entity(
    controller: "ControllerContext", entity: Entity, changes: Mapping[str, float | None]
) -> list[RecordAt]:
    keys = _keys_of(entity)
    current = controller.image.settings.client_quotas.get(tuple(sorted(entity.items())), {})
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in in_hash_map_order(entity, 3)]
    records = []
    for key, value in in_hash_map_order(changes, len(changes)):
        if value is not None:
            _check_value(keys, key, value, is_finite=controller.has(Behaviour.QUOTAS_ARE_FINITE))
            if key not in current or not _is_same(current[key], value):
                records.append(ClientQuotaRecord(entity=parts, key=key, value=value, remove=False))
        elif key in current:
            records.append(ClientQuotaRecord(entity=parts, key=key, value=0.0, remove=True))
    return [RecordAt(record, 0) for record in records]


def _keys_of(entity: Entity) -> Mapping[str, str]:
    """Return the entity's keys with the type of each; ApiError for an invalid entity."""
    if not entity:
        raise invalid_request("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise invalid_request(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise invalid_request(f"Empty {kind} not supported")
    if IP not in entity:
        return _USER_AND_CLIENT_KEYS
    if len(entity) > 1:
        raise invalid_request("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    address = entity[IP]
    if address is not None and not _is_address(address):
        raise invalid_request(f"{address} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _check_value(keys: Mapping[str, str], key: str, value: float, *, is_finite: bool) -> None:
    kind = keys.get(key)
    if kind is None:
        raise invalid_request(f"Invalid configuration key {key}")
    if is_finite and not math.isfinite(value):
        raise invalid_request(f"Quota {key} must be a finite number")
    if value <= 0:
        raise invalid_request(f"Quota {key} must be greater than 0")
    if kind == "DOUBLE":
        return
    if value > _LARGEST[kind]:
        article = "an" if kind == "INT" else "a"
        raise invalid_request(f"Proposed value for {key} is too large for {article} {kind}.")
    if value % 1.0 > _FRACTION_MAX:
        raise invalid_request(f"{key} cannot be a fractional value.")


def _is_address(text: str) -> bool:
    """Return True for what InetAddress.getByName takes without asking a name server or for the machine's interfaces."""
    if text == "localhost" or _is_ipv4(text):
        return True
    try:
        address = ipaddress.IPv6Address(text[1:-1] if text.startswith("[") and text.endswith("]") else text)
    except ValueError:
        return False
    return address.scope_id is None or address.scope_id.isdigit()


def _is_ipv4(text: str) -> bool:
    """Return True for one to four decimal numbers; the last one has the rest of the 32 bits."""
    numbers = text.split(".")
    if (
        len(text) > _IPV4_LENGTH_MAX
        or len(numbers) > 4
        or not all(each.isascii() and each.isdigit() for each in numbers)
    ):
        return False
    *bytes_, rest = map(int, numbers)
    return all(each < 256 for each in bytes_) and rest < 256 ** (4 - len(bytes_))


def _is_same(one: float, other: float) -> bool:
    """Compare as Double.equals: NaN equals NaN."""
    return one == other or (one != one and other != other)


def _entity_text(entity: Entity) -> str:
    entries = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{entries}}})"
