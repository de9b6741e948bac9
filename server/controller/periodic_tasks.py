"""Periodic tasks of an active controller (QuorumController's register… methods)."""

from typing import TYPE_CHECKING

from mockraft.releases import Behaviour
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.brokers.heartbeat import fence_one_stale_broker
from mockraft.server.controller.periodic import PeriodicTask
from mockraft.server.controller.result import ControllerResult
from mockraft.server.controller.security.delegation_tokens import remove_expired_tokens
from mockraft.server.controller.topics.periodic_elections import balance_leaders, elect_unclean_leaders
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.no_op_record import NoOpRecord

if TYPE_CHECKING:
    from mockraft.server.controller.context import ControllerContext

_STALE_CHECKS_PER_SESSION = 8


def periodic_tasks(config: ControllerConfig) -> list[PeriodicTask]:
    """Return the tasks of a controller with this configuration, in the order in which they run when due together."""
    tasks = [
        PeriodicTask(
            "fence stale brokers",
            max(1, config.session_timeout_ms // _STALE_CHECKS_PER_SESSION),
            fence_one_stale_broker,
            is_unfinished=lambda controller: controller.fenced_in_steps is not None,
        ),
    ]
    if config.metadata_max_idle_interval_ms > 0:
        tasks.append(PeriodicTask("no-op record", config.metadata_max_idle_interval_ms, write_no_op))
    if config.auto_leader_rebalance_enable:
        interval_ms = config.leader_imbalance_check_interval_seconds * 1000
        tasks.append(PeriodicTask("balance leaders", interval_ms, balance_leaders))
    tasks.append(
        PeriodicTask("elect unclean leaders", config.unclean_leader_election_interval_ms, elect_unclean_leaders)
    )
    check_interval_ms = config.delegation_token_expiry_check_interval_ms
    tasks.append(PeriodicTask("remove expired delegation tokens", check_interval_ms, remove_expired_tokens))
    return tasks


def write_no_op(controller: "ControllerContext", now_ms: int) -> ControllerResult[bool]:
    """Write a record without content, so that offsets move and a lost connection shows (KIP-835)."""
    has_record = controller.has(Behaviour.NO_OP_RECORDS)
    return ControllerResult([RecordAt(NoOpRecord(), 0)] if has_record else [], False)
