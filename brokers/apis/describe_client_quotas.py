"""DescribeClientQuotas (48): KIP-546. Quotas of the matching entities, from the image (ClientQuotasImage)."""

from __future__ import annotations

from typing import Final

from mockraft.brokers.apis.api import Api, ApiError, Need, RequestContext, invalid
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.wire import error_codes
from mockraft.wire.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from mockraft.wire.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
EXACT, DEFAULT, SPECIFIED = range(3)
_MATCH_NAMES: Final = {DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


def handle(request: DescribeClientQuotasRequest, ctx: RequestContext) -> DescribeClientQuotasResponse:
    """Return the entries that match the components; with `strict` an entity must not have any other component."""
    exact, specified = _filter(request)
    entries = []
    for entity, values in ctx.image.client_quotas.items():
        parts = dict(entity)
        if request.strict and len(parts) != len(exact) + len(specified):
            continue
        if any(kind not in parts or parts[kind] != name for kind, name in exact.items()):
            continue
        if any(kind not in parts for kind in specified):
            continue
        entries.append(
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
        )
    return DescribeClientQuotasResponse(entries=entries)


def error(_request: DescribeClientQuotasRequest, error_code: int, message: str | None) -> DescribeClientQuotasResponse:
    """Return error code and message without entries."""
    return DescribeClientQuotasResponse(error_code=error_code, error_message=message, entries=None)


def _filter(request: DescribeClientQuotasRequest) -> tuple[dict[str, str | None], set[str]]:
    """Return the names (None: the default) by entity type, and the entity types for which any name matches."""
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for component in request.components:
        kind, how = component.entity_type, component.match_type
        if not kind:
            raise invalid("Invalid empty entity type.")
        if kind in exact or kind in specified:
            raise invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(error_codes.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if how == EXACT and component.match is None:
            raise invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if how in _MATCH_NAMES and component.match is not None:
            raise invalid(f"Request specified {_MATCH_NAMES[how]}, but also specified a match string.")
        if how in (EXACT, DEFAULT):
            exact[kind] = component.match
        elif how == SPECIFIED:
            specified.add(kind)
        else:
            raise invalid(f"Unknown match type {how}")
    kinds = {*exact, *specified}
    if IP in kinds and kinds & {USER, CLIENT_ID}:
        raise invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return exact, specified


_NEEDS = (Need(AclOperation.DESCRIBE_CONFIGS),)
API = Api(DescribeClientQuotasRequest, DescribeClientQuotasResponse, handle, error, needs=_NEEDS)
