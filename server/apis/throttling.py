"""Quota of a request's client, by principal and client id."""

from mockraft.server.apis.api import RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.settings.mutation_quota import MutationQuota


def mutation_quota(controller: Controller, ctx: RequestContext, strict_since_version: int) -> MutationQuota:
    """Return the controller mutation quota; requests of older versions are never refused by it (KIP-599)."""
    is_strict = ctx.api_version >= strict_since_version
    quotas = controller.image.client_quotas
    return controller.mutation_quotas.quota_for(quotas, ctx.principal, ctx.client_id, ctx.now_ms, is_strict=is_strict)
