"""Frames of a capture as tshark sees them, and ours in the same form."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from .frame_rows import rows_of, table_of

Row = tuple[bool, int, int, int]
"""is_response, correlation id, size, and the time of the last packet in ns."""


def tool(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is needed: `make test` installs it"
    return found


def run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def tshark(path: Path, ports: Collection[int], *fields: str, in_order: bool = True) -> list[list[str]]:
    """The columns of every packet in which tshark sees Kafka."""
    decode_as = [option for port in sorted(ports) for option in ("-d", f"tcp.port=={port},kafka")]
    columns = [option for field in fields for option in ("-e", field)]
    order = f"tcp.reassemble_out_of_order:{'FALSE' if in_order else 'TRUE'}"
    options = ["-Y", "kafka", "-o", order, *decode_as, "-T", "fields", *columns]
    return [line.split("\t") for line in run(tool("tshark"), "-r", path, *options).splitlines()]


def by_tshark(path: Path, ports: Collection[int], *, in_order: bool = True) -> Counter[Row]:
    found: Counter[Row] = Counter()
    rows = tshark(
        path, ports, "tcp.dstport", "kafka.correlation_id", "kafka.len", "frame.time_epoch", in_order=in_order
    )
    for to_port, ids, lengths, time in rows:
        seconds, _, rest = time.partition(".")
        for correlation_id, length in zip(ids.split(","), lengths.split(","), strict=True):
            is_response = int(to_port) not in ports
            found[is_response, int(correlation_id), int(length), int(seconds + rest.ljust(9, "0"))] += 1
    return found


def by_us(path: Path, ports: Collection[int]) -> Counter[Row]:
    return rows_of(table_of(path, ports), "is_response", "correlation_id", "size", "ts_last_ns")
