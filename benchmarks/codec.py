"""Decode and encode times of mockraft's codec beside kio's and kafka-python's, and what importing it costs.

All contenders run in this process, taking turns, on the same bytes; the least of all rounds counts. Every peer must
write exactly our bytes before it is timed.

    python benchmarks/codec.py [--quick] [--json] [--gates]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import timeit
from math import exp, log
from typing import Any

from codec_bodies import Body, bodies
from rich.console import Console
from rich.table import Table

Timings = dict[str, dict[str, dict[str, float]]]
"""Nanoseconds by direction, message and contender."""

PEERS = ("kio", "kafka-python")

GATES = {
    ("decode", "kio"): 0.75,
    ("decode", "kafka-python"): 2.7,
    ("encode", "kio"): 12.0,
    ("encode", "kafka-python"): 8.0,
}
"""The geometric means that the codec promises: a peer's time over ours."""

IMPORT_GATES_MS = {"package + one message": 2.0, "all messages": 40.0}

IMPORTS = {
    "package + one message": "import mockraft.wire.messages.broker_heartbeat_request",
    "all messages": (
        "from mockraft.wire import messages, records\n"
        "for name in messages.NAMES: messages.by_name(name)\n"
        "for name in records.NAMES: records.by_name(name)"
    ),
}

Contender = tuple[str, str, dict[str, Any]]
"""A name, a statement to time and its names."""


def decoders_and_encoders(body: Body) -> tuple[list[Contender], list[Contender]]:
    """Decoders and encoders of a body: ours first."""
    data = body.message.write(body.version)
    cls = type(body.message)
    message = cls.read(data, body.version)
    assert message.write(body.version) == data
    decoders: list[Contender] = [("mockraft", f"read(data, {body.version})", {"read": cls.read, "data": data})]
    encoders: list[Contender] = [("mockraft", f"message.write({body.version})", {"message": message})]
    for name, peer in (("kio", _kio), ("kafka-python", _kafka_python)):
        found = peer(body, data)
        if found is not None:
            decoders.append((name, *found[0]))
            encoders.append((name, *found[1]))
    return decoders, encoders


def _kio(body: Body, data: bytes) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]] | None:
    from kio.index import load_payload_module
    from kio.serial import entity_reader, entity_writer
    from kio.static.constants import EntityType

    cls = type(body.message)
    if cls.__module__.startswith("mockraft.wire.records"):
        return None
    is_request = cls.__name__.endswith("Request")
    module = load_payload_module(cls.api_key, body.version, EntityType.request if is_request else EntityType.response)
    entity = getattr(module, cls.__name__)
    read, write = entity_reader(entity), entity_writer(entity)
    message = read(data, 0)[0]
    buffer = io.BytesIO()
    write(buffer, message)
    assert buffer.getvalue() == data, f"kio writes other bytes for {body.name}"
    names = {"read": read, "write": write, "data": data, "message": message, "BytesIO": io.BytesIO}
    return ("read(data, 0)", names), ("b = BytesIO(); write(b, message); b.getvalue()", names)


def _kafka_python(body: Body, data: bytes) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]] | None:
    from kafka.protocol.admin import CreateTopicsRequest
    from kafka.protocol.consumer import FetchRequest, FetchResponse
    from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

    classes = (CreateTopicsRequest, FetchRequest, FetchResponse, ApiVersionsResponse, MetadataResponse)
    by_name = {cls.__name__: cls for cls in classes}
    cls = by_name.get(type(body.message).__name__)
    if cls is None:
        return None
    message = cls.decode(data, version=body.version)
    message._header = None  # decode leaves it unset, encode asks for it
    assert message.encode(version=body.version) == data, f"kafka-python writes other bytes for {body.name}"
    names = {"decode": cls.decode, "data": data, "message": message}
    return (f"decode(data, version={body.version})", names), (f"message.encode(version={body.version})", names)


def measure(rounds: int, round_ms: float) -> Timings:
    """Time every contender on every body, interleaved."""
    timings: Timings = {"decode": {}, "encode": {}}
    for body in bodies():
        for direction, contenders in zip(("decode", "encode"), decoders_and_encoders(body), strict=True):
            timings[direction][body.name] = _least(contenders, rounds, round_ms)
    return timings


def _least(contenders: list[Contender], rounds: int, round_ms: float) -> dict[str, float]:
    timers = []
    for name, statement, names in contenders:
        timer = timeit.Timer(statement, "import gc; gc.enable()", globals=names)
        once = min(timer.timeit(3) for _ in range(3)) / 3
        timers.append((name, timer, max(1, int(round_ms / 1000 / once))))
    least = dict.fromkeys((name for name, _, _ in timers), float("inf"))
    for _ in range(rounds):
        for name, timer, times in timers:
            least[name] = min(least[name], timer.timeit(times) / times * 1e9)
    return least


def import_times_ms(processes: int) -> dict[str, float]:
    """The least time that an import takes inside a fresh process, after the interpreter's own start."""
    times = {}
    for name, code in IMPORTS.items():
        program = f"import time\nt = time.perf_counter()\n{code}\nprint((time.perf_counter() - t) * 1000)"
        with tempfile.TemporaryDirectory() as cache:
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {
                "PYTHONPYCACHEPREFIX": cache
            }
            runs = [
                subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment)
                for _ in range(processes + 1)
            ]
        times[name] = min(float(run.stdout) for run in runs)
    return times


def geometric_means(timings: Timings) -> dict[str, dict[str, float]]:
    """By direction and peer: the geometric mean of its time over ours."""
    means: dict[str, dict[str, float]] = {}
    for direction, by_message in timings.items():
        ratios: dict[str, list[float]] = {}
        for row in by_message.values():
            for name, time in row.items():
                ratios.setdefault(name, []).append(time / row["mockraft"])
        means[direction] = {n: exp(sum(map(log, r)) / len(r)) for n, r in ratios.items() if n != "mockraft"}
    return means


def report(timings: Timings, imports: dict[str, float]) -> dict[str, Any]:
    """Everything that was measured, as tables, gates and a few sentences."""
    sizes = {body.name: len(body.message.write(body.version)) for body in bodies()}
    means = geometric_means(timings)
    gates: list[dict[str, Any]] = [
        {
            "what": f"{direction}, {peer}'s time over ours",
            "measured": round(means[direction][peer], 2),
            "at_least": gate,
        }
        for (direction, peer), gate in GATES.items()
    ]
    gates += [
        {"what": f"import of {name}, ms", "measured": round(time, 2), "at_most": IMPORT_GATES_MS[name]}
        for name, time in imports.items()
    ]
    return {
        "title": "Codec",
        "about": (
            "Nanoseconds a message, pure Python, against kio (decodes natively) and kafka-python, all in one process "
            "and taking turns; x is the peer's time over ours. Every peer writes exactly our bytes."
        ),
        "tables": [_table(direction, rows, sizes, means[direction]) for direction, rows in timings.items()],
        "summary": [
            f"{direction}, geometric mean: {means[direction][peer]:.2f} times as fast as {peer}"
            for direction in timings
            for peer in PEERS
        ],
        "gates": gates,
    }


def _table(
    direction: str, rows: dict[str, dict[str, float]], sizes: dict[str, int], means: dict[str, float]
) -> dict[str, Any]:
    table = []
    for name, row in rows.items():
        ours = row["mockraft"]
        cells: list[str | int | float] = [name, sizes[name], round(ours), round(sizes[name] / ours * 1000)]
        for peer in PEERS:
            cells += [round(row[peer]), round(row[peer] / ours, 2)] if peer in row else ["", ""]
        table.append(cells)
    table.append(["geometric mean", "", "", "", *(cell for peer in PEERS for cell in ("", round(means[peer], 2)))])
    peers = [column for peer in PEERS for column in (f"{peer} ns", "x")]
    return {"title": direction.capitalize(), "columns": ["message", "bytes", "ns", "MB/s", *peers], "rows": table}


def missed(gate: dict[str, Any]) -> bool:
    """Return True if a bound was missed."""
    return bool(gate["measured"] < gate.get("at_least", 0) or gate["measured"] > gate.get("at_most", float("inf")))


def show(result: dict[str, Any]) -> None:
    """Print a report for people."""
    console = Console(highlight=False, width=120)
    for table in result["tables"]:
        shown = Table(title=table["title"], title_justify="left")
        for place, column in enumerate(table["columns"]):
            shown.add_column(column, justify="right" if place else "left", no_wrap=True)
        for row in table["rows"]:
            shown.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
        console.print(shown)
    for gate in result["gates"]:
        bound = f"at least {gate['at_least']}" if "at_least" in gate else f"at most {gate['at_most']}"
        console.print(f"{'MISSED' if missed(gate) else 'ok':6} {gate['what']}: {gate['measured']} ({bound})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few short rounds: a few seconds, noisy")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--gates", action="store_true", help="exit 1 when a promised ratio or import time is missed")
    options = parser.parse_args()
    timings = measure(3 if options.quick else 15, 1 if options.quick else 4)
    result = report(timings, import_times_ms(4 if options.quick else 12))
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)
    return 1 if options.gates and any(missed(gate) for gate in result["gates"]) else 0


if __name__ == "__main__":
    sys.exit(main())
