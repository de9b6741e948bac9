"""AlterClientQuotas (49), versions 0-1: KIP-546, KIP-599 (controller mutations), KIP-612 (ips).

Of these the controller itself keeps to controller_mutation_rate.
"""

from typing import Any

from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller import client_quotas
from mockraft.server.controller.acl_types import AclOperation
from mockraft.server.controller.client_quotas import Alteration, Altered
from mockraft.server.controller.controller import Controller
from mockraft.wire import error_codes
from mockraft.wire.java_values import in_hash_map_order
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData


def handle(request: Any, ctx: RequestContext, controller: Controller) -> AlterClientQuotasResponse:
    """Each entity altered, or why not; all changes are one batch."""
    alterations = [
        Alteration(
            {part.entity_type: part.entity_name for part in entry.entity},
            [(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in request.entries
    ]
    result = client_quotas.alter_client_quotas(controller, alterations)
    if request.validate_only:
        result.records.clear()
    altered = controller.commit(result, ctx.now_ms)
    return AlterClientQuotasResponse(entries=[_entry(each) for each in altered])


def error(request: Any, error_code: int, _message: str | None) -> AlterClientQuotasResponse:
    """The error for each entry of the request, in the code's own words."""
    said = error_codes.message(error_code)
    return AlterClientQuotasResponse(
        entries=[
            EntryData(
                error_code=error_code,
                error_message=said,
                entity=[
                    EntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _entry(altered: Altered) -> EntryData:
    entity, refusal = altered
    return EntryData(
        error_code=error_codes.NONE if refusal is None else refusal.error_code,
        error_message=None if refusal is None else refusal.message,
        entity=[
            EntityData(entity_type=kind, entity_name=name) for kind, name in in_hash_map_order(entity, len(entity))
        ],
    )


API = Api(
    request=AlterClientQuotasRequest,
    response=AlterClientQuotasResponse,
    handle=handle,
    min_version=0,
    max_version=1,
    error=error,
    forwardable=True,
    operation=AclOperation.ALTER_CONFIGS,
)
