"""Warnings about refused brokers, for the responses have no room for the reason.

One each, as brokers try again all the time; another one if the reason changes, or after a registration.
"""

from __future__ import annotations

import logging
from typing import Final

from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.apis.api import RequestContext
from mockraft.server.controller.controller import Controller
from mockraft.server.controller.result import ApiError
from mockraft.server.controller.settings.mutation_quota import MutationQuota
from mockraft.wire import error_codes
from mockraft.wire.printable import printable_line

REGISTER: Final = "broker %d may not register"
FETCH: Final = "replica %d may not fetch the metadata log"
QUORUM: Final = "node %d may not take part in the quorum"
OTHER_CLUSTER_REMEDY: Final = "format its directories with this cluster id, or serve with --cluster-id"

_LOGGER = logging.getLogger(__name__)


def warn_once(controller: Controller, broker_id: int, what: str, reason: str, remedy: str | None, now_ms: int) -> None:
    """Log that a broker may not do something (REGISTER, FETCH, QUORUM), unless that was the last reason for it."""
    shown = printable_line(reason, SHOWN_MAX)
    if controller.refused_brokers.due((broker_id, what), now_ms, shown):
        _LOGGER.warning(what + ": '%s'%s", broker_id, shown, f"; {remedy}" if remedy else "")


def other_cluster(controller: Controller, cluster_id: str, replica_id: int, what: str, now_ms: int) -> ApiError:
    """Return the error for a replica of another cluster, and log why: its own log has the error's name alone."""
    code = error_codes.INCONSISTENT_CLUSTER_ID
    expected = f"Expected cluster ID {controller.config.cluster_id}, but got cluster ID {cluster_id}"
    warn_once(controller, replica_id, what, f"{error_codes.name(code)}: {expected}", OTHER_CLUSTER_REMEDY, now_ms)
    return ApiError(code)


def forget(controller: Controller, broker_id: int) -> None:
    """Log the broker's next refusal in any case."""
    for what in (REGISTER, FETCH):
        controller.refused_brokers.forget((broker_id, what))


def mutation_quota(controller: Controller, ctx: RequestContext, strict_since_version: int) -> MutationQuota:
    """Return the controller mutation quota; requests of older versions are never refused by it (KIP-599)."""
    is_strict = ctx.api_version >= strict_since_version
    quotas = controller.image.settings.client_quotas
    return controller.mutation_quotas.quota_for(quotas, ctx.principal, ctx.client_id, ctx.now_ms, is_strict=is_strict)
