"""One run of `mockraft fleet`: its processes, what is shown of them meanwhile, and its end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mockraft.brokers.fleet.fleet import fetch_cluster_id
from mockraft.brokers.fleet.plan import Action, split_shards
from mockraft.brokers.fleet.processes import WorkerProcesses
from mockraft.brokers.fleet.summary import Course, Sample, done_to
from mockraft.cli.broker.command import IN_THE_CLEAR
from mockraft.cli.signals import end_tasks, stop_on_signals, until_signal
from mockraft.wire.client import DisconnectedError
from mockraft.wire.client_security import ClientSecurity

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json

SAMPLE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOrder:
    """Order for a fleet: address, brokers (id → rack), their actions, and `options`, which every process receives."""

    bootstrap: Sequence[tuple[str, int]]
    cluster_id: str | None
    security: ClientSecurity | None
    racks: dict[int, str | None]
    actions: Sequence[Action]
    processes: int
    options: dict[str, object]
    for_s: float | None


def run_fleet(order: FleetOrder) -> dict[str, Any] | None:
    """Run until the time is over or a signal comes; gives the summary, None when no controller answered."""
    return asyncio.run(_run(order))


def to_json(summary: dict[str, Json]) -> str:
    """The summary as `--json` writes it."""
    return json.dumps(summary, indent=1) + "\n"


async def _run(order: FleetOrder) -> dict[str, Any] | None:
    cluster_id = order.cluster_id or await _fetch_cluster_id(order)
    if cluster_id is None:
        return None
    shards = split_shards(
        order.racks,
        order.actions,
        order.processes,
        bootstrap=tuple(order.bootstrap),
        cluster_id=cluster_id,
        **order.options,
    )
    workers, course = WorkerProcesses(shards), Course()
    with stop_on_signals() as stopped:
        try:
            await _until_over(order, workers, course, stopped)
        finally:
            await workers.kill()
    summary = {
        "seed": order.options["seed"],
        "processes": len(shards),
        **course.summary(workers.figures, workers.lost),
        "actions": done_to(order.actions),
    }
    for line in _closing_lines(summary):
        print(line)
    return summary


async def _until_over(order: FleetOrder, workers: WorkerProcesses, course: Course, stopped: asyncio.Event) -> None:
    count = len(workers.shards)
    print(f"mockraft fleet: {len(order.racks):,} brokers in {count} process{'es' if count > 1 else ''}")
    await workers.start()
    show = asyncio.ensure_future(_show(workers, course))
    joined = asyncio.ensure_future(workers.join())
    await until_signal(stopped, show, joined, timeout_s=order.for_s)
    await end_tasks(show)
    if joined.done():
        return
    stopped.clear()
    print("the brokers ask the controller for leave; Ctrl-C stops them at once")
    workers.leave()
    await until_signal(stopped, joined)
    if not joined.done():
        workers.stop()
    await joined


async def _fetch_cluster_id(order: FleetOrder) -> str | None:
    try:
        return await fetch_cluster_id(order.bootstrap[0], security=order.security)
    except DisconnectedError as error:
        print(f"mockraft fleet: {error}{'' if order.security else IN_THE_CLEAR}", file=sys.stderr)
    except (OSError, LookupError, ValueError) as error:
        print(f"mockraft fleet: {error} (or give --cluster-id)", file=sys.stderr)
    return None


async def _show(workers: WorkerProcesses, course: Course) -> None:
    """Print a line a second."""
    began_s = asyncio.get_running_loop().time()
    while True:
        await asyncio.sleep(SAMPLE_S)
        print(_line(course.see(workers.figures, asyncio.get_running_loop().time() - began_s)))


def _line(sample: Sample) -> str:
    latency = "" if sample.p50_ms is None else f", p50 {sample.p50_ms:.1f} ms, p99 {sample.p99_ms:.1f} ms"
    return (
        f"{sample.at_s:6.1f} s  registered {sample.registered:,}, unfenced {sample.unfenced:,}, "
        f"fenced {sample.fenced:,}; {sample.heartbeats_per_s:,.0f} heartbeats/s{latency}; {sample.errors:,} errors"
    )


def _closing_lines(summary: dict[str, Any]) -> list[str]:
    steady = summary["heartbeats_once_all_were_unfenced"] or summary["heartbeats"]
    latency = steady["latency_ms"]
    memory = summary["memory_bytes_per_broker"]
    lines = [
        f"{summary['heartbeats']['answered']:,} heartbeats answered, "
        + (f"p50 {latency['p50']} ms, p99 {latency['p99']} ms" if latency["p50"] is not None else "none in time"),
        "memory per broker: " + (f"{memory / 1000:.1f} kB" if memory is not None else "not all were running"),
    ]
    if summary["errors"]:
        lines.append("errors: " + ", ".join(f"{count:,}x {name}" for name, count in summary["errors"].items()))
    for what in ("fenced_by_mistake", "died"):
        if found := summary[what]:
            first = ", ".join(f"{broker_id} ({reason})" for broker_id, reason in list(found.items())[:5])
            lines.append(f"{what.replace('_', ' ')}: {len(found):,} brokers, {first}{', …' if len(found) > 5 else ''}")
    return [*lines, *summary["lost_processes"]]
