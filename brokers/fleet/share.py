"""What one process of a fleet is told: its brokers and what happens to them; as data, for it goes through a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockraft.brokers.fleet.plan import Act, Action

OWN_REPLICATION_BROKERS_MAX = 100
"""Up to so many brokers each replicate for themselves, as Kafka's do, unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The brokers (id → rack) of one process and their actions, in order of time.

    `seed` draws the ids of their directories; incarnations are new ones every time.
    `command_config` is a file of client properties.
    """

    bootstrap: tuple[tuple[str, int], ...]
    cluster_id: str
    racks: Mapping[int, str | None]
    actions: Sequence[Action]
    seed: int
    shares_replication: bool = True
    log_dirs_per_broker: int = 1
    heartbeat_interval_ms: int = 2_000
    session_timeout_ms: int = 9_000
    command_config: str | None = None

    def to_tree(self) -> dict[str, Any]:
        """As JSON has it; :func:`share_of` reads it."""
        return {
            "bootstrap": [list(address) for address in self.bootstrap],
            "racks": list(self.racks.items()),
            "actions": [[action.at_ms, action.broker_id, action.act.value] for action in self.actions],
            **{name: getattr(self, name) for name in _PLAIN},
        }


_PLAIN = (
    "cluster_id",
    "seed",
    "shares_replication",
    "log_dirs_per_broker",
    "heartbeat_interval_ms",
    "session_timeout_ms",
    "command_config",
)


def share_of(tree: dict[str, Any]) -> Share:
    """The share of a tree that :meth:`Share.to_tree` gave."""
    return Share(
        bootstrap=tuple((host, port) for host, port in tree["bootstrap"]),
        racks=dict(tree["racks"]),
        actions=[Action(at_ms, broker_id, Act(act)) for at_ms, broker_id, act in tree["actions"]],
        **{name: tree[name] for name in _PLAIN},
    )


def dealt(racks: Mapping[int, str | None], actions: Sequence[Action], processes: int, **rest: Any) -> list[Share]:
    """The shares of so many processes, broker by broker in turn; `rest` are the other fields of a Share."""
    ids = list(racks)
    shares = []
    for number in range(min(processes, len(ids))):
        own = {broker_id: racks[broker_id] for broker_id in ids[number::processes]}
        shares.append(Share(racks=own, actions=[each for each in actions if each.broker_id in own], **rest))
    return shares
