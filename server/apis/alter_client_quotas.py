"""AlterClientQuotas (49), versions 0-1: KIP-546, KIP-599 (controller mutations), KIP-612 (ips).

The controller itself enforces controller_mutation_rate only.
"""

from mockraft.kafka_api import error_responses
from mockraft.kafka_api.authorization.acl_types import AclOperation
from mockraft.server.apis.api import Api, RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import error_fields
from mockraft.server.controller.settings import client_quotas
from mockraft.server.controller.settings.client_quotas import Alteration, Altered
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest
from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData


def handle(request: AlterClientQuotasRequest, ctx: RequestContext, controller: Controller) -> AlterClientQuotasResponse:
    """Alter each entity, or return its error; all changes are one batch."""
    alterations = [
        Alteration(
            client_quotas.entity_of((part.entity_type, part.entity_name) for part in entry.entity),
            [(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in request.entries
    ]
    result = client_quotas.alter_client_quotas(controller, alterations)
    if request.validate_only:
        result.records.clear()
    altered = controller.commit(result, ctx.now_ms)
    return AlterClientQuotasResponse(entries=[_entry(each) for each in altered])


def _entry(altered: Altered) -> EntryData:
    entity, refusal = altered
    parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
    return EntryData(**error_fields(refusal), entity=parts)


API = Api(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    handle,
    error_responses.alter_client_quotas,
    forwardable=True,
    operation=AclOperation.ALTER_CONFIGS,
)
