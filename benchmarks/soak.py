"""Load a controller with mixed traffic at a fixed, moderate rate for an hour, and see if anything grows.

`mockraft serve` with a data directory and the admin API is the controller. load.c sends the heartbeats of 120 brokers,
500 a second; soaking/traffic.py does the rest. Each period (a minute of an hour's soak) is a sample: memory, open
files, threads and log of the controller, its CPU time, and latencies from the time when a heartbeat was due. The same
program measures a peer that answers at once, so that pauses of the machine can be told from the controller's.

    python benchmarks/soak.py [--minutes 60] [--write] [--json]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
from cluster import snapshots
from contenders import SPEED, codec, has_speed, heartbeat
from load import Load, Measured, RunningLoad, echo
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import random_uuid
from mockraft.wire.connection import write_request
from result import ROOT, Result, argument_parser, show
from running.machine import commit, processor
from soaking.chart import draw
from soaking.samples import Sample, result
from soaking.traffic import Traffic

PAGE = ROOT / "docs" / "evidence" / "soak.md"
DATA = PAGE.parent / "data" / "soak.json"
MINUTES = 60.0
SAMPLES_MIN = 12
HEARTBEATS_PER_S, PEER_PER_S, PEER_CONNECTIONS = 500, 100, 20
CLOSED_WITHIN_S = 0.3
"""The load has ended, and files are counted once its connections are closed."""
SNAPSHOT_BYTES, SEGMENT_BYTES, RETENTION_BYTES = 50_000, 100_000, 300_000
"""Small, so that snapshots, new segments and deletions of old ones are frequent."""
LOG_SETTINGS = {
    "--metadata-log-max-record-bytes-between-snapshots": SNAPSHOT_BYTES,
    "--metadata-log-segment-bytes": SEGMENT_BYTES,
    "--metadata-max-retention-bytes": RETENTION_BYTES,
}


class Soak:
    """A controller under load."""

    def __init__(self, controller: MockraftController, traffic: Traffic, peer: tuple[tuple[str, int], int]) -> None:
        self._controller, self._traffic = controller, traffic
        self._peer_address, self._peer_pid = peer
        self._process = psutil.Process(controller.pid)
        requests = {broker_id: heartbeat(broker_id, epoch) for broker_id, epoch in traffic.epochs.items()}
        frames = [write_request(each, 2, broker_id, str(broker_id)) for broker_id, each in requests.items()]
        for each in requests.values():
            each.current_metadata_offset += 1  # each broker's offset alternates
        frames += [write_request(each, 2, broker_id, str(broker_id)) for broker_id, each in requests.items()]
        self._heartbeats = Load("heartbeats", frames, len(requests), HEARTBEATS_PER_S)
        self._to_peer = Load("peer", frames, PEER_CONNECTIONS, PEER_PER_S, error_at=-1)
        self._snapshots: set[Path] = set()

    async def samples(self, minutes: float) -> list[Sample]:
        """Return a sample for each period."""
        period_s = min(60.0, minutes * 60 / SAMPLES_MIN)
        began_s, taken = time.monotonic(), list[Sample]()
        while (passed_s := time.monotonic() - began_s) < minutes * 60 - period_s / 2:
            # Each period is as much shorter as those before were longer.
            seconds = (len(taken) + 1) * period_s - passed_s
            taken.append(await self._sample(began_s, seconds))
            print(taken[-1].line(), file=sys.stderr, flush=True)
        return taken

    async def _sample(self, began_s: float, seconds: float) -> Sample:
        cpu_s, from_s = sum(self._process.cpu_times()[:2]), time.monotonic()
        address = self._controller.host, self._controller.port
        heartbeats = RunningLoad(address, self._controller.pid, self._heartbeats, seconds)
        peer = RunningLoad(self._peer_address, self._peer_pid, self._to_peer, seconds)
        answered, echoed = await asyncio.gather(asyncio.to_thread(heartbeats.wait), asyncio.to_thread(peer.wait))
        self._judge(answered)
        passed_s = time.monotonic() - from_s
        data_dir = self._controller.data_dir
        assert data_dir is not None
        self._snapshots.update(snapshots(data_dir))
        await asyncio.sleep(CLOSED_WITHIN_S)
        return Sample(
            at_min=(time.monotonic() - began_s) / 60,
            memory_mib=self._process.memory_info().rss / (1 << 20),
            files=self._process.num_fds(),
            threads=self._process.num_threads(),
            log_mb=sum(path.stat().st_size for path in data_dir.rglob("*.log")) / 1e6,
            snapshots=len(self._snapshots),
            cpu_percent=100 * (sum(self._process.cpu_times()[:2]) - cpu_s) / passed_s,
            p50_ms=answered.p50_ms,
            p99_ms=answered.p99_ms,
            max_ms=answered.max_ms,
            peer_p99_ms=echoed.p99_ms,
            machine_load=os.getloadavg()[0],
            unexpected=self._traffic.unexpected_count,
        )

    def _judge(self, heartbeats: Measured) -> None:
        if heartbeats.errors:
            self._traffic.blame(f"{heartbeats.errors} of {heartbeats.answers} heartbeats had an error code")


async def soak(minutes: float, folder: Path) -> tuple[list[Sample], Result]:
    """Start everything, take the samples, and stop everything."""
    options = [str(word) for pair in LOG_SETTINGS.items() for word in pair]
    controller = MockraftController(folder, random_uuid(), options=[*options, "--admin-port", "0"])
    try:
        with codec(SPEED) if has_speed() else contextlib.nullcontext():
            controller.start()
        controller.wait_until_running()
        ready = re.search(r"admin=(http\S+)", controller.log)
        assert ready is not None
        traffic = Traffic((controller.host, controller.port), controller.cluster_id, ready[1])
        with echo(answer_bytes=20) as peer:
            async with traffic:
                samples = await Soak(controller, traffic, peer).samples(minutes)
        return samples, result(samples, traffic.done, traffic.unexpected, minutes, has_speed=has_speed())
    finally:
        controller.kill()


def page(measured: Result) -> str:
    """Return the page with the result, the machine and the commit."""
    met = sum(gate.holds for gate in measured.gates)
    lines = [
        "# Soak",
        "",
        "`python benchmarks/soak.py --write` writes this page and [the samples](data/soak.json); a soak of a minute is "
        "a test of `make soak`.",
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} from commit {commit(ROOT)} with Python {platform.python_version()} on "
        f"{os.cpu_count()} × {processor()}: {met} of {len(measured.gates)} bounds are met.",
        "",
        "![Memory, log and latencies over the time of the soak](soak.svg)",
        "",
        measured.section("soak"),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argument_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"how long (default {MINUTES:g})")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/soak.md and its chart")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples, measured = asyncio.run(soak(options.minutes, Path(folder)))
    if options.write:
        draw(samples, PAGE.with_suffix(".svg"))
        DATA.write_text(json.dumps([each._asdict() for each in samples], indent=0) + "\n")
        PAGE.write_text(page(measured))
    show(measured, options)
    return 0 if all(gate.holds for gate in measured.gates) else 1


if __name__ == "__main__":
    sys.exit(main())
