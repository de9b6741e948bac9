"""Compare whole commands that read captures, from their start to their tables: what a user waits for.

Two captures of the same number of packets: generated traffic of a controller, and real traffic of Kafka 4.3.1 (its
clients, brokers and controllers), repeated with other addresses and times. `mockraft spark decode` writes its default
tables, and the frames alone, on local[2] and on Spark's standalone cluster of two workers with one core each. Beside
it: `read_frames` in one process, tshark, and a job that reads the frames with PySpark and dpkt (`dpkt_job.py`), which
has no reassembly. Not part of `make benchmarks`: at 5 million packets it takes an hour.

    python benchmarks/volume.py --packets 5000000
    python benchmarks/volume.py --quick                          100,000 packets
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from capture_generator import PORT, REAL, generate, repeat
from result import Cell, Result, Table, argument_parser, show
from spark import FIELDS, KAFKA_FIELDS, say
from watched_processes import JOBS, Taken, TooLateError, compiled_modules, run

from tests.spark.standalone_cluster import standalone_cluster

MEBIBYTE = 1 << 20
COMMAND_S_MAX = 1800
CLUSTER_PARTITIONS = "4"
EXECUTORS = "spark.executor.memory=512m"
"""Less than the workers have: an executor that fits into none would be waited for without end."""


def commands(path: Path, ports: str, out: Path, master: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands that read a capture, by their names in the table."""
    decode = [sys.executable, "-m", "mockraft", "spark", "decode", "--overwrite", "--out", str(out)]
    decode += ["--captures", str(path), "--ports", ports]
    local, cluster = (
        ["--master", "local[2]"],
        ["--master", master, "--partitions", CLUSTER_PARTITIONS, "--conf", EXECUTORS],
    )
    few = ["--tables", "frames"]
    yield "`read_frames`, one process", [sys.executable, str(JOBS), "core", str(path), ports]
    yield "`spark decode --tables frames`, local[2]", [*decode, *few, *local]
    yield "`spark decode`, default tables, local[2]", [*decode, *local]
    yield "`spark decode --tables frames`, standalone, two workers", [*decode, *few, *cluster]
    yield "`spark decode`, default tables, standalone, two workers", [*decode, *cluster]
    job = Path(__file__).with_name("dpkt_job.py")
    yield "PySpark and dpkt, local[2]", [sys.executable, str(job), str(path), ports, str(out) + "-dpkt"]
    if shutil.which("tshark"):
        fields = [part for field in (*FIELDS, *KAFKA_FIELDS) for part in ("-e", field)]
        ways = [part for port in ports.split(",") for part in ("-d", f"tcp.port=={port},kafka")]
        yield "tshark, 9 fields", ["tshark", "-r", str(path), *ways, "-Y", "kafka", "-T", "fields", *fields]


def measured(name: str, command: list[str]) -> list[Cell]:
    """Return what a command took: seconds, processor seconds, MiB of the process and of the largest Python worker."""
    try:
        taken: Taken = run(command, COMMAND_S_MAX)
    except (TooLateError, subprocess.CalledProcessError) as error:
        return [f"failed: {str(error)[:60]}", "", "", ""]
    # Nobody waits for the processes that Spark's JVM starts, so their time is not in that of the ended children.
    cpu = "" if "local[2]" in name or "standalone" in name else f"{taken.cpu_seconds:.1f}"
    workers = f"{taken.worker_bytes / MEBIBYTE:,.0f}" if taken.worker_bytes else ""
    return [f"{taken.seconds:.1f}", cpu, f"{taken.rss_bytes / MEBIBYTE:,.0f}", workers]


def main() -> None:
    parser = argument_parser(__doc__, "100,000 packets")
    parser.add_argument("--packets", type=int, default=5_000_000, help="packets of each capture (default 5,000,000)")
    parser.add_argument("--folder", type=Path, help="folder for captures and tables (default: the system's)")
    options: argparse.Namespace = parser.parse_args()
    packets = 100_000 if options.quick else options.packets
    tables = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="mockraft-volume-") as name:
        folder = Path(name)
        with compiled_modules(), standalone_cluster(folder) as cluster:
            for kind, ports in (("generated", str(PORT)), ("real", ",".join(map(str, REAL)))):
                path = folder / f"{kind}.pcap"
                made = generate(path, packets, 200) if kind == "generated" else repeat(path, packets)
                rows: list[list[Cell]] = []
                for what, command in commands(path, ports, folder / "tables", cluster.master):
                    say(f"{kind}: {what} …")
                    rows.append([what, *measured(what, command)])
                title = f"{kind.capitalize()} traffic: {made.packets:,} packets, {made.file_bytes / 1e6:,.0f} MB"
                columns = ["", "seconds", "CPU s", "MiB of the process", "MiB of a Python worker"]
                tables.append(Table(title, columns, rows))
                path.unlink()
    show(Result("Whole commands that read captures", (__doc__ or "").partition("\n\n")[2].strip(), tables), options)


if __name__ == "__main__":
    main()
