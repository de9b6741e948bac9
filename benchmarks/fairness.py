"""Measure how long a broker's heartbeats wait while hostile clients keep a controller busy.

Each attack is made on mockraft and on Kafka's controller: requests that are filled with the smallest elements of their
arrays, with distinct names or with unknown tagged fields, a response that is much longer than its request, and clients
that pipeline requests and never read. Beside it a broker sends heartbeats, 10 ms after each response.

    python benchmarks/fairness.py [--quick] [--json]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from contenders import Contender, address, contenders, registrations
from mockraft.conformance.hostile.smallest_elements import Filling, fillings
from mockraft.conformance.hostile.under_attack import (
    Attack,
    Client,
    GoodBroker,
    Waits,
    never_reads,
    peak_memory,
    sends_and_reads,
)
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.schema_files import schema
from result import OURS, THEIRS, Cell, Gate, Result, Table, argument_parser, show

FRAME_BYTES = 8 << 20
LARGEST_BYTES = 100_000_000
HEARTBEAT_MS_MAX = 1_000
MEMORY_MIB_MAX = 400
SESSION_MS = 9_000
LARGEST_MEMORY_MIB_MAX = 2_048
ATTACK_S = 4.0
CLIENTS = 8
PIPELINING = 40
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
    """An attack: the frames of each client, and what the client does."""

    name: str
    frames: Sequence[bytes]
    client: Client = sends_and_reads
    is_largest: bool = False


def scenarios(broker_epoch: int, *, is_quick: bool) -> Iterator[Scenario]:
    """Yield the attacks; some name broker 1, so that they get further."""
    chosen = [each for api in [*CHOSEN][: 2 if is_quick else None] for each in _chosen(api, broker_epoch)]
    for each in chosen:
        limit = _elements_max(each)
        yield Scenario(f"{each.name}, {limit:,} elements", [each.frame(FRAME_BYTES, limit)])
        yield Scenario(f"{each.name}, 8 MiB", [each.frame(FRAME_BYTES)])
    names = chosen[1]
    yield Scenario(f"{names.name}, {CLIENTS} clients", [names.frame(FRAME_BYTES, _elements_max(names))] * CLIENTS)
    yield Scenario(f"{names.name}, 100 MB", [names.frame(LARGEST_BYTES)], is_largest=True)
    resource = DescribeConfigsResource(resource_type=4, resource_name="3000", configuration_keys=None)
    many = DescribeConfigsRequest(resources=[resource] * 20_000, include_synonyms=True)
    yield Scenario("DescribeConfigs of one node, 20,000 times", [write_request(many, 4, 1, "attacker")])
    pipelined = write_request(ApiVersionsRequest(), 0, 1, "attacker") * 1_000
    yield Scenario(f"{PIPELINING} clients pipeline ApiVersions, never read", [pipelined] * PIPELINING, never_reads)


def _elements_max(filling: Filling) -> int:
    """Return mockraft's default limit: a request with more elements is refused before it is read to its end."""
    return APIS[schema(f"{filling.api}Request").api_key].elements_max(ControllerConfig())


def _chosen(api: tuple[str, int], broker_epoch: int) -> list[Filling]:
    found = [each for each in fillings(*api) if each.name.endswith(CHOSEN[api])]
    return [replace(each, values={"broker_epoch": broker_epoch}) for each in found]


def attacked(controller: Contender, scenario: Scenario, broker_id: int) -> tuple[Waits | None, float]:
    """Return a broker's waits (None: the controller stopped answering) and the controller's peak memory in MiB."""
    (registration,) = registrations(controller.cluster_id, [broker_id])
    try:
        broker = GoodBroker(address(controller), registration)
        peak_mib = peak_memory(controller.pid)
        with Attack(address(controller), scenario.frames, scenario.client) as attack:
            end = time.perf_counter() + ATTACK_S
            is_enough = scenario.client is never_reads
            waits = broker.beat_until(lambda: time.perf_counter() > end and (is_enough or attack.rounds > 1))
        broker.close()
        return waits, peak_mib()
    except OSError:
        return None, float("nan")


def measure(*, is_quick: bool) -> Result:
    """Make every attack on both controllers."""
    rows: dict[str, list[Cell]] = {}
    worst = {"wait": 0.0, "memory": 0.0, "largest wait": 0.0, "largest memory": 0.0}
    with tempfile.TemporaryDirectory() as folder, contenders(Path(folder)) as both:
        for kind in (OURS, THEIRS):
            controller = both[kind]
            (first,) = registrations(controller.cluster_id, [1])
            epoch = GoodBroker(address(controller), first).broker_epoch
            for number, scenario in enumerate(scenarios(epoch, is_quick=is_quick), start=2):
                print(f"{kind}: {scenario.name}", file=sys.stderr, flush=True)
                waits, peak_mib = attacked(controller, scenario, number)
                row = rows.setdefault(scenario.name, [scenario.name])
                if waits is None:
                    row += ["stopped", "", ""]
                    controller.kill()
                    controller.start()
                    controller.wait_until_running()
                    continue
                row += [f"{waits.p99_ms:.0f}", f"{waits.max_ms:.0f}", f"{peak_mib:.0f}"]
                if kind == OURS:
                    prefix = "largest " if scenario.is_largest else ""
                    worst[f"{prefix}wait"] = max(worst[f"{prefix}wait"], waits.max_ms)
                    worst[f"{prefix}memory"] = max(worst[f"{prefix}memory"], peak_mib)
    columns = ["attack"] + [
        f"{who} {what}" for who in ("mockraft", "Kafka") for what in ("p99 ms", "max ms", "peak MiB")
    ]
    return Result(
        "Hostile clients",
        "A broker sends a heartbeat 10 ms after each response while one client, or as many as named, sends the same "
        "frame again and again. Frames are filled with the smallest elements of the array named: as many as "
        "mockraft's limits allow, or until the size named, which mockraft refuses. p99 and max are of the heartbeats' "
        "latency, peak is the controller's resident memory (Kafka's: with its default heap of 1 GiB). stopped: no "
        "heartbeat was answered for a minute, or the process ended.",
        [Table("Heartbeats beside an attack", columns, [*rows.values()])],
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
