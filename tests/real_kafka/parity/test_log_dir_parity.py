"""The same broken directories for Kafka's classes and for mockraft: equal formatting, starts and refusals."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mockraft.brokers.log_dirs.ensemble import BOOTSTRAP_CHECKPOINT, META_PROPERTIES, LogDirsError, MetaProperties
from mockraft.brokers.log_dirs.startup_rules import open_log_dirs
from mockraft.brokers.log_dirs.storage_format import format_log_dirs

from ...brokers.log_dirs.bootstrap_file import BOOTSTRAP_FILE
from ...cli.cli import invoke
from .oracle import kafkas_answers

pytestmark = pytest.mark.real_kafka

CLUSTER = "41QSStLtR3qOekbX4ZlbHA"
GOOD = MetaProperties(1, CLUSTER, 8)
NAMES = ("d0", "d1")
Damage = Callable[[Path], object]


def write(path: Path, data: bytes) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / META_PROPERTIES).write_bytes(data)


def put(name: str, meta: MetaProperties | bytes) -> Damage:
    return lambda root: write(root / name, meta if isinstance(meta, bytes) else meta.write())


def with_id(letter: str) -> MetaProperties:
    return GOOD.with_directory_id(letter.encode() * 16)


def both_formatted(root: Path) -> None:
    write(root / "d0", with_id("a").write())
    write(root / "d1", with_id("b").write())


def also(*damages: Damage) -> Damage:
    def prepare(root: Path) -> None:
        both_formatted(root)
        for damage in damages:
            damage(root)

    return prepare


def instead_of_d1(make: Damage) -> Damage:
    def prepare(root: Path) -> None:
        write(root / "d0", with_id("a").write())
        make(root)

    return prepare


def nothing(root: Path) -> None:
    root.mkdir(exist_ok=True)


def unlisted(root: Path) -> None:
    (root / "d1").chmod(0)


def linked_twice(root: Path) -> None:
    write(root / "d0", with_id("a").write())
    (root / "d1").symlink_to(root / "d0")


def linked_without_an_id(root: Path) -> None:
    write(root / "d0", GOOD.write())
    (root / "d1").symlink_to(root / "d0")


DIRS: dict[str, Damage] = {
    "nothing is there": nothing,
    "both are formatted": both_formatted,
    "one is formatted": lambda root: write(root / "d0", with_id("a").write()),
    "only the second is formatted": lambda root: write(root / "d1", with_id("a").write()),
    "an empty dir is there": also(lambda root: (root / "d1" / META_PROPERTIES).unlink()),
    "the first has no directory id": also(put("d0", GOOD)),
    "none has a directory id": also(put("d0", GOOD), put("d1", GOOD)),
    "version 0 with both ids": also(put("d1", MetaProperties(0, CLUSTER, 8))),
    "version 0 without ids": also(put("d1", b"")),
    "version 0 of another node": also(put("d1", MetaProperties(0, CLUSTER, 9))),
    "version 0 without a cluster id": also(put("d1", MetaProperties(0, None, 8))),
    "version 2": also(put("d1", b"version=2\nnode.id=8\ncluster.id=" + CLUSTER.encode())),
    "version with spaces": also(put("d1", b"version= 1 \nnode.id=8\ncluster.id=" + CLUSTER.encode())),
    "version is no number": also(put("d1", b"version=one\n")),
    "no node id": also(put("d1", b"version=1\ncluster.id=" + CLUSTER.encode())),
    "no cluster id": also(put("d1", b"version=1\nnode.id=8\n")),
    "an empty cluster id": also(put("d1", b"version=1\nnode.id=8\ncluster.id=\n")),
    "node id with a space": also(put("d1", b"version=1\nnode.id=8 \ncluster.id=" + CLUSTER.encode())),
    "node id with a plus": also(put("d1", b"version=1\nnode.id=+8\ncluster.id=" + CLUSTER.encode())),
    "node id in words": also(put("d1", b"version=1\nnode.id=eight\ncluster.id=" + CLUSTER.encode())),
    "node id too large": also(put("d1", b"version=1\nnode.id=2147483648\ncluster.id=" + CLUSTER.encode())),
    "another node": also(put("d1", MetaProperties(1, CLUSTER, 9))),
    "another node in the first": also(put("d0", MetaProperties(1, CLUSTER, 9))),
    "another cluster": also(put("d1", MetaProperties(1, "other", 8))),
    "all of another cluster": also(put("d0", MetaProperties(1, "other", 8)), put("d1", MetaProperties(1, "other", 8))),
    "one directory id twice": also(put("d1", with_id("a"))),
    "a reserved directory id": also(put("d1", GOOD.with_directory_id(bytes(15) + b"\x05"))),
    "the first id that is not reserved": also(put("d1", GOOD.with_directory_id(bytes(15) + b"\x64"))),
    "a directory id below zero": also(put("d1", GOOD.with_directory_id(bytes(8) + b"\xff" * 8))),
    "a directory id that is none": also(put("d1", b"version=1\nnode.id=8\ndirectory.id=x\ncluster.id=c\n")),
    "a directory id that is too long": also(put("d1", GOOD.write() + b"directory.id=" + b"A" * 30)),
    "the file is cut within a key": also(put("d1", with_id("b").write()[:-30])),
    "the file is cut within the cluster id": also(put("d1", with_id("b").write()[:-5])),
    "the file is binary": also(put("d1", bytes(range(256)) * 4)),
    "a broken escape": also(put("d1", b"version=1\\u00\n")),
    "escapes and continued lines": also(
        put("d1", b"versi\\u006fn:1\nnode.id 8\ncluster.id=\\\n   " + CLUSTER.encode())
    ),
    "the file is a directory": also(
        lambda root: (root / "d1" / META_PROPERTIES).unlink(), lambda root: (root / "d1" / META_PROPERTIES).mkdir()
    ),
    "a file where a dir should be": instead_of_d1(lambda root: (root / "d1").write_text("mine")),
    "a link to nowhere": instead_of_d1(lambda root: (root / "d1").symlink_to(root / "gone")),
    "a link to itself": instead_of_d1(lambda root: (root / "d1").symlink_to(root / "d1")),
    "a link to the other": linked_twice,
    "a link to the other, without an id": linked_without_an_id,
    "a dir that only root may list": also(unlisted),
    "a metadata log in the first": also(lambda root: (root / "d0" / "__cluster_metadata-0").mkdir()),
    "a metadata log in the second": also(lambda root: (root / "d1" / "__cluster_metadata-0").mkdir()),
    "the new file cannot be written": also(
        put("d1", GOOD), lambda root: (root / "d1" / f"{META_PROPERTIES}.tmp").mkdir()
    ),
    "the first cannot be read": also(put("d0", b"version=7")),
    "neither can be read": also(put("d0", b"version=7"), put("d1", b"version=7")),
    "a metadata dir apart": also(put("m", with_id("m"))),
    "a metadata dir apart, not formatted": both_formatted,
    "a metadata dir apart, of another node": also(put("m", MetaProperties(1, CLUSTER, 9))),
    "a metadata dir apart that cannot be read": also(put("m", b"version=7")),
    "a metadata dir apart, all others unreadable": also(
        put("d0", b"version=7"), put("d1", b"version=7"), put("m", with_id("m"))
    ),
    "a metadata dir apart, the first unreadable": also(put("d0", b"version=7"), put("m", with_id("m"))),
    "a metadata dir apart with the log": also(
        put("m", with_id("m")), lambda root: (root / "m" / "__cluster_metadata-0").mkdir()
    ),
    "one dir named twice": both_formatted,
    "the bootstrap file is there": also(lambda root: (root / "d0" / BOOTSTRAP_CHECKPOINT).write_bytes(BOOTSTRAP_FILE)),
    "the bootstrap file is empty": also(lambda root: (root / "d0" / BOOTSTRAP_CHECKPOINT).write_bytes(b"")),
    "the bootstrap file is cut": also(
        lambda root: (root / "d0" / BOOTSTRAP_CHECKPOINT).write_bytes(BOOTSTRAP_FILE[:200])
    ),
    "the bootstrap file is binary": also(
        lambda root: (root / "d0" / BOOTSTRAP_CHECKPOINT).write_bytes(bytes(range(255, 0, -1)))
    ),
    "the bootstrap file of a data dir is empty": also(lambda root: (root / "d1" / BOOTSTRAP_CHECKPOINT).touch()),
}


def metadata_dir_of(case: str, root: Path) -> str | None:
    return str(root / "m") if case.startswith("a metadata dir apart") else None


def log_dirs_of(case: str, root: Path) -> list[str]:
    return [str(root / name) for name in (("d0", "d0") if case == "one dir named twice" else NAMES)]


def properties(case: str, root: Path) -> Path:
    metadata = metadata_dir_of(case, root)
    path = root.with_suffix(".properties")
    lines = [
        "process.roles=broker",
        "node.id=8",
        "controller.quorum.bootstrap.servers=127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        f"log.dirs={','.join(log_dirs_of(case, root))}",
        *([f"metadata.log.dir={metadata}"] if metadata else []),
    ]
    path.write_text("\n".join(lines))
    return path


def without_paths(text: str, root: Path) -> str:
    """An answer without names of directories."""
    text = re.sub(rf"{re.escape(str(root))}/(\w+)", "DIR", text)
    return re.sub(r"Optional\[(\S+)\]", r"\1", text)


def prepared(case: str, folder: Path) -> Path:
    root = folder / re.sub(r"\W", "-", case)
    root.mkdir(parents=True)
    DIRS[case](root)
    return root


def ask_kafka(lines: list[str]) -> list[str]:
    options = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    return kafkas_answers("LogDirOracle.java", lines, *options, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


def files(root: Path) -> dict[str, list[str]]:
    """Directories that hold each of the files written by formatting."""
    return {
        name: [file for file in (META_PROPERTIES, BOOTSTRAP_CHECKPOINT) if os.path.isfile(root / name / file)]
        for name in (*NAMES, "m")
    }


def our_start(case: str, root: Path) -> str:
    try:
        begun = open_log_dirs(
            log_dirs_of(case, root), 8, None, random.Random(1), metadata_log_dir=metadata_dir_of(case, root)
        )
    except LogDirsError as error:
        return f"refused {error}"
    return " ".join(["live", *sorted(Path(each.path).name for each in begun.log_dirs)])


def our_format(case: str, root: Path, *, ignore_formatted: bool) -> str:
    try:
        done = format_log_dirs(
            log_dirs_of(case, root),
            8,
            CLUSTER,
            random.Random(1),
            metadata_log_dir=metadata_dir_of(case, root),
            ignore_formatted=ignore_formatted,
        )
    except LogDirsError as error:
        return f"refused {error}"
    return "done " + " ".join(sorted(done.lines()))


HALTS = {"refused halted": "refused Shutdown broker because none of the specified log dirs"}
"""A halt says no more than that; the log has the text."""


def as_told(kafka: str) -> str:
    """Kafka's text up to where Java words an error of the file system or of a batch."""
    if "meta.properties.tmp (Is a directory)" in kafka:
        return "refused Error while writing meta.properties file DIR: "
    if "in file DIR/bootstrap.checkpoint" in kafka:
        return "refused DIR/bootstrap.checkpoint: "
    return re.sub(r"(Error while writing meta.properties file DIR: ).*", r"\1", HALTS.get(kafka, kafka))


def test_broker_starts_or_refuses_as_kafka_does(tmp_path: Path) -> None:
    kafkas = {case: prepared(case, tmp_path / "kafka") for case in DIRS}
    ours = {case: prepared(case, tmp_path / "ours") for case in DIRS}
    answers = ask_kafka([f"start\t{properties(case, root)}" for case, root in kafkas.items()])
    differing = {}
    for (case, root), answer in zip(kafkas.items(), answers, strict=True):
        kafka = as_told(without_paths(answer, root))
        found = without_paths(our_start(case, ours[case]), ours[case])
        if (found != kafka) if kafka.startswith("live") else not found.startswith(kafka):
            differing[case] = (kafka, found)
    assert differing == {}
    assert sum(answer.startswith("live") for answer in answers) > 10


PIECES = (b"\\", b"\n", b"\r", b" ", b"=", b":", b"#", b"\\u0041", b"\\u00", b"\t", b"\f", b"\xff", b"\0", b"-", b"8")


def damaged(rng: random.Random) -> bytes:
    """A file like one that a disk, an editor or a person has been at."""
    data = bytearray(with_id("b").write())
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(data) + 1)
        piece = rng.choice(PIECES)
        data[at : at + rng.choice((0, 0, 1, 8))] = piece
    return bytes(data)


def test_randomly_damaged_files_are_parsed_as_in_kafka(tmp_path: Path) -> None:
    rng = random.Random(5)
    case = "both are formatted"
    cases = [damaged(rng) for _ in range(400)]
    folders = {side: [tmp_path / side / str(number) for number in range(len(cases))] for side in ("kafka", "ours")}
    for roots in folders.values():
        for root, data in zip(roots, cases, strict=True):
            write(root / "d0", with_id("a").write())
            write(root / "d1", data)
    answers = ask_kafka([f"start\t{properties(case, root)}" for root in folders["kafka"]])
    differing = []
    for data, kafkas, ours, answer in zip(cases, folders["kafka"], folders["ours"], answers, strict=True):
        kafka, found = without_paths(answer, kafkas), without_paths(our_start(case, ours), ours)
        if (found != kafka) if kafka.startswith("live") else not found.startswith(kafka):
            differing.append((data, kafka, found))
    assert differing == []
    kinds = {answer.partition(":")[0][:24] for answer in answers}
    assert len(kinds) >= 4, kinds


@pytest.mark.parametrize("ignore_formatted", [False, True])
def test_the_same_directories_are_formatted(ignore_formatted: bool, tmp_path: Path) -> None:
    kafkas = {case: prepared(case, tmp_path / "kafka") for case in DIRS}
    ours = {case: prepared(case, tmp_path / "ours") for case in DIRS}
    options = ["-g"] if ignore_formatted else []
    asked = ["\t".join(["format", str(properties(case, root)), CLUSTER, *options]) for case, root in kafkas.items()]
    differing = {}
    for (case, root), answer in zip(kafkas.items(), ask_kafka(asked), strict=True):
        found = our_format(case, ours[case], ignore_formatted=ignore_formatted)
        kafka = as_told(without_paths(answer, root))
        mine = without_paths(found, ours[case])
        alike = mine.startswith(kafka) if kafka.startswith("refused") else mine.startswith("done")
        if not alike or files(root) != files(ours[case]):
            differing[case] = (kafka, mine, files(root), files(ours[case]))
    assert differing == {}


FORMATS: list[tuple[str, tuple[str, ...]]] = [
    ("", ()),
    ("", ("-g",)),
    ("", ("-N",)),
    ("", ("--standalone",)),
    *[("", ("--release-version", version)) for version in ("3.3", "3.6-IV2", "3.8", "4.0-IV3", "4.3.1", "9.9")],
    *[("", ("--feature", f"metadata.version={level}")) for level in (6, 7, 27, 34, 99)],
    *[("", ("-f", f"kraft.version={level}")) for level in (0, 1, 7)],
    *[("", ("-f", feature)) for feature in ("group.version=0", "group.version=7", "no.such=1")],
    ("", ("-f", "group.version=0", "-f", "streams.version=0")),
    ("", ("-r", "3.8", "-f", "group.version=1")),
    ("", ("-r", "3.9", "-f", "eligible.leader.replicas.version=1")),
    ("", ("-r", "3.8", "-f", "metadata.version=20")),
    ("controller.quorum.voters=2@127.0.0.1:1", ("-f", "kraft.version=0")),
    ("controller.quorum.voters=2@127.0.0.1:1", ("-f", "kraft.version=1")),
    ("log.dir.failure.timeout.ms=0", ()),
    ("cordoned.log.dirs=/nowhere", ()),
    ("num.partitions=x", ()),
    ("log.cleanup.policy=delete,delete", ()),
]
"""A property and options of kafka-storage format."""


def test_format_prints_and_refuses_what_kafka_storage_does(tmp_path: Path) -> None:
    asked, roots = [], [tmp_path / str(number) for number in range(len(FORMATS))]
    for (more, options), root in zip(FORMATS, roots, strict=True):
        path = properties("a metadata dir apart", root)
        path.write_text(f"{path.read_text()}\n{more}\n")
        asked.append("\t".join(("format", str(path), CLUSTER, *options)))
    answers = ask_kafka(asked)
    differing = []
    for (_, options), root, answer in zip(FORMATS, roots, answers, strict=True):
        shutil.rmtree(root, ignore_errors=True)
        done = invoke("format", "--cluster-id", CLUSTER, "--config", root.with_suffix(".properties"), *options)
        ours = done.stdout if done.exit_code == 0 else f"refused {done.stderr}"
        said = answer.removeprefix("done ").removeprefix("refused ").removeprefix("requirement failed: ").strip()
        if answer.startswith("refused") != ours.startswith("refused") or said not in ours.replace("\n", " "):
            differing.append((answer, ours))
    assert differing == []
    assert {answer.split()[0] for answer in answers} == {"done", "refused"}


def test_formatted_directories_are_accepted_in_both_directions(tmp_path: Path) -> None:
    cases = ["nothing is there", "a metadata dir apart, not formatted"]
    ours = {case: tmp_path / "ours" / re.sub(r"\W", "-", case) for case in cases}
    kafkas = {case: tmp_path / "kafka" / root.name for case, root in ours.items()}
    for root in (*ours.values(), *kafkas.values()):
        root.mkdir(parents=True)
    for case, root in ours.items():
        our_format(case, root, ignore_formatted=False)
    answers = ask_kafka(
        [
            line
            for case, root in ours.items()
            for line in (
                f"info\t{properties(case, root)}",
                f"start\t{properties(case, root)}",
                f"format\t{properties(case, kafkas[case])}\t{CLUSTER}",
            )
        ]
    )
    assert [answer.split(" ")[0] for answer in answers] == ["done", "live", "done"] * 2
    assert all(f"cluster.id={CLUSTER}" in answer and "node.id=8, version=1" in answer for answer in answers[::3])
    assert answers[1::3] == ["live d0 d1"] * 2
    assert [our_start(case, root) for case, root in kafkas.items()] == ["live d0 d1"] * 2
