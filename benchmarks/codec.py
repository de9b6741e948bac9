"""Compare decoding and encoding with kio and kafka-python, and measure import times.

All libraries run in this process, in turns, on the same bytes; the shortest of all rounds is reported. Each library
must write exactly the same bytes before it is timed.

    python benchmarks/codec.py [--quick] [--json] [--gates]
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import timeit
from math import exp, log
from typing import Any

from codec_peers.bodies import Body, bodies
from result import Cell, Gate, Result, Table, argument_parser, show

Timings = dict[str, dict[str, dict[str, float]]]
"""Nanoseconds by direction, message and contender."""

PEERS = ("kio", "kafka-python")

GATES = {
    ("decode", "kio"): 0.75,
    ("decode", "kafka-python"): 2.7,
    ("encode", "kio"): 12.0,
    ("encode", "kafka-python"): 8.0,
}
"""Bounds of the geometric means: the other library's time ÷ mockraft's."""

IMPORT_GATES_MS = {"package + one message": 2.0, "all messages": 40.0}

IMPORTS = {
    "package + one message": "import mockraft.wire.messages.broker_heartbeat_request",
    "all messages": (
        "from mockraft.wire import messages, records\n"
        "for name in messages.NAMES: messages.by_name(name)\n"
        "for name in records.NAMES: records.by_name(name)"
    ),
}

Names = dict[str, Any]
"""Names of a timed statement; those of other libraries have no types."""
Contender = tuple[str, str, Names]
"""A library, a statement to time and its names."""


def decoders_and_encoders(body: Body) -> tuple[list[Contender], list[Contender]]:
    """Return decoders and encoders of a body, mockraft's first."""
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


def _kio(body: Body, data: bytes) -> tuple[tuple[str, Names], tuple[str, Names]] | None:
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
    assert buffer.getvalue() == data, f"kio writes different bytes for {body.name}"
    names = {"read": read, "write": write, "data": data, "message": message, "BytesIO": io.BytesIO}
    return ("read(data, 0)", names), ("b = BytesIO(); write(b, message); b.getvalue()", names)


def _kafka_python(body: Body, data: bytes) -> tuple[tuple[str, Names], tuple[str, Names]] | None:
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
    assert message.encode(version=body.version) == data, f"kafka-python writes different bytes for {body.name}"
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
    """Return the shortest import time in new processes, without the interpreter's start."""
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
    """Return the geometric mean of each library's time ÷ mockraft's, by direction and library."""
    means: dict[str, dict[str, float]] = {}
    for direction, by_message in timings.items():
        ratios: dict[str, list[float]] = {}
        for row in by_message.values():
            for name, time in row.items():
                ratios.setdefault(name, []).append(time / row["mockraft"])
        means[direction] = {n: exp(sum(map(log, r)) / len(r)) for n, r in ratios.items() if n != "mockraft"}
    return means


def report(timings: Timings, imports: dict[str, float]) -> Result:
    """Return everything that was measured."""
    sizes = {body.name: len(body.message.write(body.version)) for body in bodies()}
    means = geometric_means(timings)
    return Result(
        "Codec",
        "Nanoseconds per message, pure Python, compared with kio (native decoding) and kafka-python in one process, in "
        "turns; x is the other library's time ÷ mockraft's. All libraries write exactly the same bytes.",
        [_table(direction, rows, sizes, means[direction]) for direction, rows in timings.items()],
        [
            f"{direction}, geometric mean: {means[direction][peer]:.2f} times as fast as {peer}"
            for direction in timings
            for peer in PEERS
        ],
        [
            *(
                Gate(f"{direction}, {peer}'s time ÷ mockraft's", str(round(means[direction][peer], 2)), at_least=least)
                for (direction, peer), least in GATES.items()
            ),
            *(
                Gate(f"import of {name}, ms", str(round(time, 2)), at_most=IMPORT_GATES_MS[name])
                for name, time in imports.items()
            ),
        ],
    )


def _table(direction: str, rows: dict[str, dict[str, float]], sizes: dict[str, int], means: dict[str, float]) -> Table:
    table: list[list[Cell]] = []
    for name, row in rows.items():
        ours = row["mockraft"]
        cells: list[Cell] = [name, sizes[name], round(ours), round(sizes[name] / ours * 1000)]
        for peer in PEERS:
            cells += [round(row[peer]), round(row[peer] / ours, 2)] if peer in row else ["", ""]
        table.append(cells)
    table.append(["geometric mean", "", "", "", *(cell for peer in PEERS for cell in ("", round(means[peer], 2)))])
    peers = [column for peer in PEERS for column in (f"{peer} ns", "x")]
    return Table(direction.capitalize(), ["message", "bytes", "ns", "MB/s", *peers], table)


def main() -> int:
    """Measure and print."""
    parser = argument_parser(__doc__, "few short rounds: a few seconds, noisy")
    parser.add_argument("--gates", action="store_true", help="exit with 1 if a bound is not met")
    options = parser.parse_args()
    timings = measure(3 if options.quick else 15, 1 if options.quick else 4)
    result = report(timings, import_times_ms(4 if options.quick else 12))
    show(result, options)
    return int(options.gates and not all(gate.holds for gate in result.gates))


if __name__ == "__main__":
    sys.exit(main())
