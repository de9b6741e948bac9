"""Compare reading the frames of a capture with `read_frames` on one core, Spark on two cores, and tshark.

Also measured: memory, scaling, and cost against file size. Captures are generated (`capture_generator.py`) and deleted
at the end; the disk must have room for 1.5 times the largest one. tshark, the core and Spark take turns with the same
file, and ratios are medians over the rounds, so other work on the machine affects them less than the seconds. Spark's
jobs take a second, so each runs several times in a round, and the median counts. The core, which is one process as
tshark is, is compared by processor time. tshark discards 9 fields of each frame, the core counts frames, Spark writes
them to Parquet. Python starts from compiled modules, as an installed package does. The start of Spark's JVM and its
first jobs are not counted: a session serves many jobs. Missing programs (tshark, Java) and measurements that did not
fit into the time are listed in the result.

    python benchmarks/spark.py                                   everything, about eight minutes on a quiet machine
    python benchmarks/spark.py --quick                           100,000 packets, one round
    python benchmarks/spark.py --packets 6000000 --rounds 5      larger, more rounds
    python benchmarks/spark.py --sizes 100000,1000000 --minutes 4
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from capture_generator import PORT, Generated, generate
from frame_jobs import shuffle_bytes
from result import argument_parser, show
from spark_results import FRAMES, JSON_BODIES, NO_BODIES, SCALED, TURNS, TYPED, Pair, Results, result
from watched_processes import JOBS, SparkSession, Taken, TooLateError, compiled_modules, run

FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport")
KAFKA_FIELDS = ("kafka.len", "kafka.api_key", "kafka.correlation_id")
SIZES = (100_000, 1_000_000, 10_000_000)
TSHARK_PACKETS_MAX = 2_000_000
CONNECTIONS = 200
SESSIONS = 100
BOTH, ONE = "0,1", "0"
DECODING: dict[str, dict[str, str]] = {
    NO_BODIES: {"job": "messages"},
    JSON_BODIES: {"job": "bodies"},
    **{f"{TYPED} of {api}": {"job": "typed", "api": api} for api in ("BrokerHeartbeat", "Fetch")},
}
"""The jobs of `decoding`, by their names in the results."""
WARM_UPS = 2
"""Jobs before the measured ones: the JVM compiles frequent code."""


class Benchmark:
    """One run: captures, sessions and results, within a time limit."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.events = folder / "events"
        self.events.mkdir()
        self.results = Results(options.packets, options.rounds)
        self.made: dict[str, Generated] = {}
        self.sessions: dict[str, SparkSession] = {}
        self._deadline: float = time.monotonic() + 60 * options.minutes

    @property
    def left_s(self) -> float:
        return float(self._deadline - time.monotonic())

    def all(self) -> None:
        """Run every part; list those that fail or do not fit into the time."""
        parts: list[tuple[str, Callable[[], None]]] = [
            ("tshark, core and Spark in turns", self.pairs),
            ("decoding", self.decoding),
            ("one core and two", self.scaling),
            ("one hot connection", self.hot_connection),
            ("replay of sessions", self.replay),
            *((f"{size:,} packets", partial(self.size, size)) for size in self.options.sizes),
        ]
        try:
            for name, part in parts:
                say(f"{name} …")
                try:
                    part()
                except TooLateError as error:
                    self.results.missing.append(f"{name} (no time left: {error})")
                except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                    self.results.missing.append(f"{name} ({str(error).splitlines()[-1][:200]})")
        finally:
            for session in self.sessions.values():
                session.close()
        if made := self.made.get(self._name(self.options.packets)):
            self.results.file_bytes = made.file_bytes
            self.results.shuffle_bytes = shuffle_bytes(self.events, "paired") // max(TURNS * len(self.results.pairs), 1)

    def pairs(self) -> None:
        """Run tshark, the core and Spark on two cores in turns."""
        packets, path = self.options.packets, self.capture(self.options.packets)
        if shutil.which("tshark") is None:
            self.results.missing.append("tshark (Debian package tshark)")
        for _ in range(WARM_UPS):
            self.frames(path, BOTH, "warm-up")
        self.sessions[BOTH].memory.forget()
        few = self.capture(min(self.options.sizes, default=packets))
        self.core(few)
        for _ in range(self.options.rounds):
            # Spark ends Python workers that had nothing to do for a minute: while tshark ran. A small capture would be
            # one split, and warm up one of two workers.
            self.frames(path, BOTH, "warm-up")
            spark_s = statistics.median(self.frames(path, BOTH, "paired") for _ in range(TURNS))
            core, _ = self.core(path)
            tshark = self.tshark(path) if shutil.which("tshark") else None
            self.results.pairs.append(Pair(tshark, core, spark_s))
        self.results.workers[packets] = dict(self.sessions[BOTH].memory.peaks)

    def decoding(self) -> None:
        """Decode, encode and compare every frame in the Parquet files of `pairs`: without bodies, as JSON, typed."""
        session, source = self.session(BOTH), str(self.folder / f"frames-{BOTH}")
        job = {"path": source, "out": str(self.folder / "messages"), "name": "decoding"}
        self.results.stream_bytes = session.ask(job | {"job": "stream_bytes"}, self.left_s)["rows"]
        frames = self.made[self._name(self.options.packets)].frames
        for number in range(self.options.rounds + 1):
            seconds: dict[str, list[float]] = {name: [] for name in DECODING}
            for name, words in [*DECODING.items()] * TURNS:
                before = session.cpu_seconds()
                done = session.ask(job | words, self.left_s)
                if "api" not in words:
                    self.check(done["rows"], frames)
                seconds[name].append(done["seconds"])
                if number:
                    self.results.add_cpu(name, before, session.cpu_seconds())
            for name, taken in seconds.items() if number else ():
                self.results.decoded.setdefault(name, []).append(frames / statistics.median(taken))

    def scaling(self) -> None:
        """Run Spark on two cores and on one in turns, on a larger capture."""
        path = self.capture(SCALED * self.options.packets)
        for cpus in (BOTH, *(ONE,) * WARM_UPS):
            self.frames(path, cpus, "warm-up")
        for _ in range(self.options.rounds):
            two_cores_s, one_core_s = (self.frames(path, cpus) for cpus in (BOTH, ONE))
            self.results.scaling.append((two_cores_s, one_core_s))
        path.unlink()

    def hot_connection(self) -> None:
        """Compare the same number of packets on one connection and on many."""
        packets = min(self.options.packets, 1_000_000)
        hot, spread = self.capture(packets, 1), self.capture(packets)
        for _ in range(self.options.rounds):
            self.results.hot.append((self.frames(hot, BOTH), self.frames(spread, BOTH)))
        hot.unlink()

    def replay(self) -> None:
        """Replay sessions, each to a mockraft of its own, on two cores and on one, after a few to warm up."""
        for cpus in (BOTH, ONE):
            session = self.session(cpus)
            job = {"job": "replay", "out": str(self.folder / f"replay-{cpus}"), "name": "replay"}
            session.ask(job | {"sessions": 2}, self.left_s)
            before = session.cpu_seconds()
            done = session.ask(job | {"sessions": SESSIONS}, self.left_s)
            if done["rows"] != SESSIONS:
                raise RuntimeError(f"{done['rows']} sessions were replayed of {SESSIONS}")
            self.results.replays.append(done["seconds"])
            if cpus == BOTH:
                self.results.add_cpu(f"replay of {SESSIONS} sessions", before, session.cpu_seconds())
        self.results.sessions = SESSIONS

    def size(self, packets: int) -> None:
        """Run the core, Spark and (unless it would need gigabytes) tshark once."""
        path = self.capture(packets)
        row = self.results.row(packets)
        self.session(BOTH).memory.forget()
        row["Spark"] = self.frames(path, BOTH)
        self.results.workers[packets] = dict(self.sessions[BOTH].memory.peaks)
        whole, row["core"] = self.core(path)
        self.results.core_rss[packets] = whole.rss_bytes
        row["core, whole command"] = whole.seconds
        paired = [pair.tshark.seconds for pair in self.results.pairs if pair.tshark]
        if paired and packets == self.options.packets:
            row["tshark"] = statistics.median(paired)
        elif packets <= TSHARK_PACKETS_MAX and shutil.which("tshark"):
            tshark = self.tshark(path)
            row["tshark"], self.results.tshark_rss[packets] = tshark.seconds, tshark.rss_bytes
        if packets != self.options.packets:
            path.unlink()

    def frames(self, path: Path, cpus: str, name: str = "") -> float:
        """Return the seconds that a session takes to write the frames to Parquet."""
        job = {"job": "frames", "path": str(path), "out": str(self.folder / f"frames-{cpus}"), "port": PORT}
        session = self.session(cpus)
        before = session.cpu_seconds()
        done = session.ask(job | {"name": name}, self.left_s)
        if name == "paired":
            self.results.add_cpu(FRAMES, before, session.cpu_seconds())
        self.check(done["rows"], self.made[path.stem].frames)
        return float(done["seconds"])

    def core(self, path: Path) -> tuple[Taken, float]:
        """Return what the whole command took, and the seconds of reading alone."""
        done = run([sys.executable, str(JOBS), "core", str(path), str(PORT)], self.left_s)
        said = json.loads(done.output)
        self.check(said["rows"], self.made[path.stem].frames)
        return done, said["seconds"]

    def tshark(self, path: Path) -> Taken:
        """Return what tshark took."""
        fields = [part for field in (*FIELDS, *KAFKA_FIELDS) for part in ("-e", field)]
        decode = ["-d", f"tcp.port=={PORT},kafka", "-Y", "kafka", "-T", "fields", *fields]
        return run(["tshark", "-r", str(path), *decode], self.left_s)

    def session(self, cpus: str) -> SparkSession:
        """Return the session on these cores, started at its first use."""
        if cpus not in self.sessions:
            session = self.sessions[cpus] = SparkSession(cpus, self.events, self.folder / "spark.log")
            session.wait_until_ready(self.left_s)
        return self.sessions[cpus]

    def capture(self, packets: int, connections: int = CONNECTIONS) -> Path:
        """Return a generated capture with this number of packets."""
        name = self._name(packets, connections)
        path = self.folder / f"{name}.pcap"
        if not path.exists():
            if self.left_s < 0:
                raise TooLateError("before the capture was made")
            self.made[name] = generate(path, packets, connections)
        return path

    @staticmethod
    def _name(packets: int, connections: int = CONNECTIONS) -> str:
        return f"{packets}-{connections}"

    @staticmethod
    def check(found: int, wanted: int) -> None:
        """Raise RuntimeError unless all frames were found."""
        if found != wanted:
            raise RuntimeError(f"{found:,} frames were found of {wanted:,}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def main() -> None:
    parser = argument_parser(__doc__, "100,000 packets, one round")
    parser.add_argument("--packets", type=int, default=2_000_000, help="packets of the capture for the ratios")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (default 3)")
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="packets of the files for cost against size")
    parser.add_argument("--minutes", type=float, default=15, help="leave out measurements after this time (default 15)")
    parser.add_argument("--folder", help="folder for temporary captures and Parquet files (default: the system's)")
    options = parser.parse_args()
    if options.quick:
        options.packets, options.rounds, options.sizes = 100_000, 1, [20_000, 100_000]
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="mockraft-benchmark-") as folder:
        benchmark = Benchmark(options, Path(folder))
        with compiled_modules():
            benchmark.all()
    show(result(benchmark.results), options)


if __name__ == "__main__":
    main()
