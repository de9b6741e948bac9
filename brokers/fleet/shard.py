"""One process's part of a fleet: its brokers and their actions, as data that can be sent through a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockraft.brokers.fleet.plan import Act, Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The brokers (id → rack) of one process and their actions, in order of time.

    `seed` determines directory ids, not incarnation ids. `command_config` is a file of client properties.
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
        """Return the JSON form; :func:`shard_of` reads it."""
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


def shard_of(tree: dict[str, Any]) -> Shard:
    """Return the shard from a tree of :meth:`Shard.to_tree`."""
    return Shard(
        bootstrap=tuple((host, port) for host, port in tree["bootstrap"]),
        racks=dict(tree["racks"]),
        actions=[Action(at_ms, broker_id, Act(act)) for at_ms, broker_id, act in tree["actions"]],
        **{name: tree[name] for name in _PLAIN},
    )


def split_shards(
    racks: Mapping[int, str | None], actions: Sequence[Action], processes: int, **rest: Any
) -> list[Shard]:
    """Return shards for so many processes, brokers assigned round-robin; `rest` are the other fields of a Shard."""
    ids = list(racks)
    shards = []
    for number in range(min(processes, len(ids))):
        own = {broker_id: racks[broker_id] for broker_id in ids[number::processes]}
        shards.append(Shard(racks=own, actions=[each for each in actions if each.broker_id in own], **rest))
    return shards
