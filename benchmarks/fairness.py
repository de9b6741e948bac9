"""Measure how long a broker's heartbeats wait while hostile clients keep a controller busy.

Each attack is made on mockraft, most of them on Kafka's controller too: requests that are filled with the smallest
elements of their arrays, with distinct names or with unknown tagged fields, a response that is much longer than its
request, a thousand connections that send a short request at once, and clients that pipeline requests and never read.
Beside it a broker sends heartbeats, 10 ms after each response.

    python benchmarks/fairness.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from contenders import SESSION_TIMEOUT_MS, address, controller, registrations
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.wire.connection import OUTER_SHARE, write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.schema_files import schema
from result import OURS, THEIRS, Cell, Gate, Result, Table, argument_parser, show

from tools.hostile.smallest_elements import UNLIMITED, Filling, fillings
from tools.hostile.under_attack import (
    TIMEOUT_S,
    Attack,
    Client,
    GoodBroker,
    Waits,
    at_once,
    never_reads,
    peak_memory,
    sends_and_reads,
)

FRAME_BYTES = 8 << 20
LARGEST_BYTES = 100_000_000
HEARTBEAT_MS_MAX = 1_000
MEMORY_MIB_MAX = 400
SESSION_MS = 9_000
LARGEST_MEMORY_MIB_MAX = 2_048
ATTACK_S = 2.0
LONGEST_ATTACK_S = 15.0
CLIENTS = 8
PIPELINING = 40
MANY = 1_000
NODE_ID = 3000
CHOSEN = {
    ("ApiVersions", 4): ("unknown tagged fields",),
    ("CreateTopics", 7): ("topics, distinct names", "topics.assignments"),
    ("ElectLeaders", 2): ("topicPartitions, distinct names", "topicPartitions.partitions"),
    ("DescribeConfigs", 4): ("resources, distinct names",),
    ("IncrementalAlterConfigs", 1): ("resources, distinct names",),
    ("AlterPartition", 3): ("topics",),
    ("AssignReplicasToDirs", 0): ("directories.topics",),
}
"""By API and version, the arrays whose elements cost most."""


class Scenario(NamedTuple):
    """An attack: the frames of each client, for the epoch of broker 1, and what the client does."""

    name: str
    frames: Callable[[int], Sequence[bytes]]
    client: Client = sends_and_reads
    is_largest: bool = False
    with_kafka: bool = True


def scenarios(*, is_quick: bool) -> Iterator[Scenario]:
    """Yield the attacks; some name broker 1, so that they get further."""
    chosen = [each for api in [*CHOSEN][: 2 if is_quick else None] for each in _chosen(*api)]
    for each in chosen:
        limit = _elements_max(each)
        # Kafka has no limit of elements, so it is attacked with the longer frames only.
        yield Scenario(f"{each.name}, {limit:,} elements", _filled(each, FRAME_BYTES, limit), with_kafka=False)
        yield Scenario(f"{each.name}, 8 MiB", _filled(each, FRAME_BYTES))
    names = chosen[1]
    limit = _elements_max(names)
    yield Scenario(f"{names.name}, {CLIENTS} clients", _filled(names, FRAME_BYTES, limit, clients=CLIENTS))
    yield Scenario(f"{names.name}, 100 MB", _filled(names, LARGEST_BYTES), is_largest=True)
    resource = DescribeConfigsResource(resource_type=4, resource_name=str(NODE_ID), configuration_keys=None)
    many = DescribeConfigsRequest(resources=[resource] * 16_000, include_synonyms=True)
    yield Scenario("DescribeConfigs of one node, 16,000 times", lambda _: [write_request(many, 4, 1, "attacker")])
    one = write_request(DescribeConfigsRequest(resources=[resource]), 4, 1, "")
    name = f"{MANY:,} connections send {len(one)} bytes of DescribeConfigs at once"
    yield Scenario(name, lambda _: [one], at_once(MANY))
    pipelined = write_request(ApiVersionsRequest(), 0, 1, "attacker") * 1_000
    name = f"{PIPELINING} clients pipeline ApiVersions, never read"
    yield Scenario(name, lambda _: [pipelined] * PIPELINING, never_reads)


def _elements_max(filling: Filling) -> int:
    """Return mockraft's default limit: a request with more elements is refused."""
    limit = APIS[schema(f"{filling.api}Request").api_key].elements_max(ControllerConfig())
    return limit // OUTER_SHARE if len(filling.path) == 1 else limit


def _chosen(api: str, version: int) -> list[Filling]:
    return [each for each in fillings(api, version) if each.name.endswith(CHOSEN[api, version])]


def _filled(
    filling: Filling, frame_bytes: int, elements: int = UNLIMITED, clients: int = 1
) -> Callable[[int], Sequence[bytes]]:
    def frames(broker_epoch: int) -> Sequence[bytes]:
        return [replace(filling, values={"broker_epoch": broker_epoch}).frame(frame_bytes, elements)] * clients

    return frames


def attacked(kind: str, scenario: Scenario) -> tuple[Waits | None, float]:
    """Return a broker's waits (None: it got no response) and the peak memory of a fresh controller, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        target = controller(kind, Path(folder), SESSION_TIMEOUT_MS)
        try:
            target.start()
            target.wait_until_running()
            (registration,) = registrations(target.cluster_id, [1])
            broker = GoodBroker(address(target), registration)
            peak_mib = peak_memory(target.pid)
            with Attack(address(target), scenario.frames(broker.broker_epoch), scenario.client) as attack:
                try:
                    waits = beats(broker, attack, is_enough=scenario.client is never_reads)
                    return waits, float("nan") if waits is None else peak_mib()
                finally:
                    target.kill()  # here, so that no client waits for it
        finally:
            target.kill()


def beats(broker: GoodBroker, attack: Attack, *, is_enough: bool) -> Waits | None:
    """Return the waits of a broker until the attack was made twice; None if it got no response at all."""
    began = time.perf_counter()

    def is_over() -> bool:
        passed = time.perf_counter() - began
        return passed > LONGEST_ATTACK_S or (passed > ATTACK_S and (is_enough or attack.rounds > 1))

    try:
        return broker.beat_until(is_over)
    except OSError:
        return None


def measure(*, is_quick: bool) -> Result:
    """Make every attack on both controllers."""
    rows: list[list[Cell]] = []
    worst = {"wait": 0.0, "memory": 0.0, "largest wait": 0.0, "largest memory": 0.0}
    for scenario in scenarios(is_quick=is_quick):
        row: list[Cell] = [scenario.name]
        for kind in (OURS, THEIRS):
            if kind == THEIRS and not scenario.with_kafka:
                row += [""] * 3
                continue
            print(f"{kind}: {scenario.name}", file=sys.stderr, flush=True)
            waits, peak_mib = attacked(kind, scenario)
            row += ["stopped", "", ""]
            if waits is not None:
                row[-3:] = [f"{waits.p99_ms:.0f}", f"{waits.max_ms:.0f}", f"{peak_mib:.0f}"]
            if kind == OURS:
                longest_ms = float("inf") if waits is None else waits.max_ms
                prefix = "largest " if scenario.is_largest else ""
                worst[f"{prefix}wait"] = max(worst[f"{prefix}wait"], longest_ms)
                worst[f"{prefix}memory"] = max(worst[f"{prefix}memory"], peak_mib)
        rows.append(row)
    columns = ["attack"] + [
        f"{who} {what}" for who in ("mockraft", "Kafka") for what in ("p99 ms", "max ms", "peak MiB")
    ]
    return Result(
        "Hostile clients",
        "A broker sends a heartbeat 10 ms after each response while one client, or as many as named, sends the same "
        "frame again and again, each time to a fresh controller. Frames are filled with the smallest elements of the "
        "array named: as many as mockraft's limits allow, or until the size named, which mockraft refuses. p99 and max "
        "are of the heartbeats' latency, peak is the controller's resident memory (Kafka's: with its default heap of "
        f"1 GiB). stopped: a heartbeat was not answered within {TIMEOUT_S:.0f} s, or the controller resigned.",
        [Table("Heartbeats beside an attack", columns, rows)],
        gates=[
            Gate("longest wait of a heartbeat, frames of 8 MiB, ms", f"{worst['wait']:.0f}", at_most=HEARTBEAT_MS_MAX),
            Gate("resident memory, frames of 8 MiB, MiB", f"{worst['memory']:.0f}", at_most=MEMORY_MIB_MAX),
            Gate("longest wait of a heartbeat, 100 MB, ms", f"{worst['largest wait']:.0f}", at_most=SESSION_MS),
            Gate("resident memory, 100 MB, MiB", f"{worst['largest memory']:.0f}", at_most=LARGEST_MEMORY_MIB_MAX),
        ],
    )


if __name__ == "__main__":
    arguments = argument_parser(__doc__, quick="two APIs only").parse_args()
    show(measure(is_quick=arguments.quick), arguments)
