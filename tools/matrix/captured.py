"""A short run of a real cluster of each release as a capture, and its frames judged: by us, by tshark and by kio.

Each capture is kept in `tests/captures/releases`; `docs/evidence/data/captures.json` has what is found in it.
"""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions
from kio.serial import entity_reader
from mockraft.codegen.every_release import every_release
from mockraft.kafka.child_process import ChildProcess
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.tools import KafkaTool
from mockraft.spark_replay.decoding.message_table import decode_batches
from mockraft.spark_replay.frames import read_frames
from mockraft.wire import messages

from tests.clients import consume, create_topic, produce
from tests.spark_replay.tshark_frames import by_tshark, by_us, tool
from tests.wire.kio_values import alike, kio_class, our_leaves

from . import evidence

EVIDENCE = "captures.json"
CAPTURES = Path(__file__).parents[2] / "tests" / "captures" / "releases"


class CaptureContents(TypedDict):
    """Contents of a capture.

    `decoded` counts frames that are decoded and written again to the same bytes, `failures` lists the others;
    `by_tshark` counts frames that tshark finds with the same direction, correlation id, size and time, and `by_kio`
    those that kio reads to the same values, among the ones that it knows.
    """

    frames: int
    decoded: int
    failures: list[str]
    by_tshark: int
    by_kio: int
    known_to_kio: int
    apis: dict[str, list[int]]


class Row(CaptureContents):
    """One capture: the Kafka version of all processes, the servers' ports, the day of the run."""

    kafka: str
    ports: list[int]
    date: str


def read() -> list[Row]:
    """Return the rows of the evidence."""
    return evidence.read(EVIDENCE)


def keep(row: Row) -> None:
    """Write a row of the evidence."""
    evidence.keep(EVIDENCE, row)


def capture_of(version: str) -> Path:
    """Return the path of a version's capture."""
    return CAPTURES / f"kafka-{version}.pcapng.gz"


def capture(version: str) -> Row:
    """Run a cluster of that version, keep the capture of its listeners, and return what is found in it."""
    with TemporaryDirectory(prefix=f"kafka-{version}-capture-") as folder:
        cluster = KafkaCluster(Path(folder, "cluster"), controller="kafka", versions=(version, version))
        ports = [cluster.controller.port, *(broker.port for broker in cluster.brokers.values())]
        found = Path(folder, "found.pcapng")
        with _captured(ports, found):
            _run(cluster, version)
        CAPTURES.mkdir(parents=True, exist_ok=True)
        with found.open("rb") as file, gzip.GzipFile(capture_of(version), "wb", mtime=0) as kept:
            shutil.copyfileobj(file, kept)
    today = datetime.now(UTC).date().isoformat()
    return {"kafka": version, "ports": ports, "date": today, **judge(capture_of(version), ports)}


@contextmanager
def _captured(ports: list[int], path: Path) -> Iterator[None]:
    """Capture these ports of the loopback interface as long as the block runs."""
    process = ChildProcess("dumpcap", path.with_suffix(".log"))
    ports_filter = " or ".join(f"tcp port {port}" for port in ports)
    try:
        process.launch([tool("dumpcap"), "-q", "-i", "lo", "-B", "32", "-f", ports_filter, "-w", str(path)])
        process.wait_for_log(r"File: ")
        yield
        process.stop()
    finally:
        process.kill()


def _run(cluster: KafkaCluster, version: str) -> None:
    """Use the cluster as clients do, with librdkafka and the tools of its release, and shut it down."""
    values = [f"letter-{number}" for number in range(100)]
    with cluster:
        servers = cluster.bootstrap_servers
        create_topic(servers, "letters", partitions=3, replicas=2)
        produce(servers, "letters", values, enable_idempotence=True)
        assert sorted(consume(servers, "letters")) == sorted(values)
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topic = ConfigResource(ConfigResource.Type.TOPIC, "letters")
        kept_for = ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)
        changed = ConfigResource(ConfigResource.Type.TOPIC, "letters", incremental_configs=[kept_for])
        for asked in (
            admin.describe_configs([topic]),
            admin.incremental_alter_configs([changed]),
            admin.create_partitions([NewPartitions("letters", 4)]),
        ):
            for future in asked.values():
                future.result(30)
        admin.describe_cluster().result(30)
        for arguments in TOOLS:
            KafkaTool(arguments[0], version).run("--bootstrap-server", servers, *arguments[1:])
        for future in admin.delete_topics(["letters"]).values():
            future.result(30)
        cluster.brokers[2].stop()
        cluster.stop()


TOOLS = (
    ("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"),
    ("kafka-topics", "--describe"),
    ("kafka-metadata-quorum", "describe", "--replication"),
    ("kafka-features", "describe"),
    ("kafka-log-dirs", "--describe"),
    ("kafka-console-consumer", "--topic", "letters", "--from-beginning", "--max-messages", "100", "--group", "readers"),
    ("kafka-consumer-groups", "--describe", "--all-groups"),
)
"""Tools of the release and their arguments."""


def judge(path: Path, ports: list[int]) -> CaptureContents:
    """Decode every frame of a capture, and compare with tshark and kio."""
    failures = []
    apis: dict[str, set[int]] = {}
    frames = decoded = 0
    for batch in decode_batches(read_frames(path, ports), "none"):
        for row in batch.to_pylist():
            frames += 1
            if row["roundtrip"] and row["pair_status"] in ("paired", "no_response", "acks0"):
                decoded += 1
                apis.setdefault(row["api_name"], set()).add(row["api_version"])
            else:
                failures.append(f"{row['client_id']}: {row['error'] or row['decode_status']}, {row['pair_status']}")
    alike, known = _by_kio(path, ports)
    return {
        "frames": frames,
        "decoded": decoded,
        "failures": failures,
        "by_tshark": (by_us(path, ports) & by_tshark(path, ports)).total(),
        "by_kio": alike,
        "known_to_kio": known,
        "apis": {name: sorted(versions) for name, versions in sorted(apis.items())},
    }


def _by_kio(path: Path, ports: list[int]) -> tuple[int, int]:
    """Return the numbers of frames that kio reads to the same values, and of those whose message it knows."""
    counts: Counter[bool] = Counter()
    union = every_release()
    for batch in read_frames(path, ports):
        for row in batch.to_pylist():
            if row["api_key"] < 0:
                continue
            cls: Any = (union.response if row["is_response"] else union.request)(row["api_key"])
            try:
                entity = kio_class(cls.__name__, row["api_version"])
            except KeyError:
                continue
            header: Any = messages.ResponseHeader if row["is_response"] else messages.RequestHeader
            _, offset = header.read_from(row["frame"], row["header_version"], 0)
            message, _ = cls.read_from(row["frame"], row["api_version"], offset)
            theirs, _ = entity_reader(entity)(row["frame"], offset)
            ours = our_leaves(union.schema(cls.__name__).root, message, row["api_version"])
            counts[alike(theirs, ours)] += 1
    return counts[True], counts.total()
