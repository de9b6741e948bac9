"""`mockraft vectors --check`: answers of programs, those that end or are silent, and folders that cannot be used."""

from __future__ import annotations

import shlex
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from mockraft.vectors.vector_files import MessageVectors, Vector, write_manifest, write_message
from mockraft.wire.json_form import Tree

from ..rows import each_row
from .cli import invoke as mockraft
from .cli import one_line

NAME = "SnapshotHeaderRecord"
JSON = '{"json": {"version": 0, "lastContainedLogTimestamp": 5}}'
HEX = '{"hex": "0000000000000000000500"}'
ERROR = '{"error": "it ends"}'
UNSUPPORTED = '{"unsupported": "no records"}'
RIGHT = (JSON, HEX, JSON[:-1].replace("5", '5, "unknown": 1') + "}", ERROR)
"""Answers to the four questions about `vectors`."""


def write_vectors(parent: Path) -> Path:
    """Write a folder with three vectors of one message."""
    tree: Tree = {"version": 0, "lastContainedLogTimestamp": 5}
    lines = [
        Vector(version=0, kind="filled", json=tree, hex="0000000000000000000500"),
        Vector(version=0, kind="unknown tags", json=tree, hex="0000000000000000000501a84600"),
        Vector(version=0, kind="malformed", hex="0000", error="java.nio.BufferUnderflowException"),
    ]
    folder = parent / "vectors"
    (folder / "4.4.0").mkdir(parents=True)
    sha256 = write_message(folder / "4.4.0", NAME, lines)
    of = MessageVectors(message=NAME, kafka_class="", spec="", versions=[0], vectors=3, sha256=sha256)
    write_manifest(folder, "0.2.0", {"4.4.0": [of]})
    return folder


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    return write_vectors(tmp_path)


def saying(*lines: str, then: str = "") -> str:
    """Return a program that prints these lines, whatever it is asked."""
    return shlex.join(
        [sys.executable, "-c", f"import sys; print('\\n'.join(sys.argv[1:]), flush=True); {then}", *lines]
    )


@each_row(
    ("program", "code", "expected"),
    {
        "right": (saying(*RIGHT), 0, "1 passed, 0 failed in"),
        "another value": (
            saying(JSON.replace("5", "6"), *RIGHT[1:]),
            1,
            "jsonl:1, decode filled: lastContainedLogTimestamp should be 5, is 6",
        ),
        "a field too many": (saying(RIGHT[2], *RIGHT[1:]), 1, "unknown should be <nothing>, is 1"),
        "other bytes": (
            saying(JSON, '{"hex": "00"}', *RIGHT[2:]),
            1,
            "jsonl:1, encode filled: Kafka's bytes are 0000000000000000000500, not 00",
        ),
        "refuses what is right": (saying(ERROR, *RIGHT[1:]), 1, "decode filled: refused: it ends"),
        "reads what is malformed": (
            saying(*RIGHT[:3], JSON),
            1,
            "and Kafka refuses the bytes: java.nio.BufferUnderflowException",
        ),
        "has no such message": (saying(*[UNSUPPORTED] * 4), 1, "0 passed, 0 failed, 1 not tried"),
        "has a part": (saying(*RIGHT[:3], UNSUPPORTED), 1, "0 passed, 0 failed, 1 not tried"),
        "rubbish": (saying("ready\x1b", *RIGHT[1:]), 1, "answered no JSON"),
        "no object": (saying("[]", *RIGHT[1:]), 1, "an answer is one of json, hex, error, unsupported, not []"),
        "json for bytes": (saying(JSON, JSON, *RIGHT[2:]), 1, "Kafka's bytes are"),
        "ends": (saying(JSON, then="sys.exit(3)"), 1, "encode filled: the program ended with exit code 3"),
        "half a line": (
            saying(JSON, then="sys.stdout.write('{')"),
            1,
            "encode filled: the program ended with exit code 0",
        ),
        "silent": (saying(JSON, then="sys.stdin.close(); import time; time.sleep(9999)"), 1, "no answer within 2 s"),
        "endless": (saying("x" * 9, then="[sys.stdout.write('x' * 65536) for _ in iter(int, 1)]"), 1, "16,777,216"),
        "does not exist": ("./none", 2, "mockraft vectors: --check: ./none: No such file or directory"),
    },
)
def test_a_program_is_judged_by_its_answers(program: str, code: int, expected: str, vectors: Path) -> None:
    done = mockraft("vectors", str(vectors), "--check", program, "--timeout-s", "2" if "sleep" in program else "60")
    assert (done.exit_code, expected in done.output) == (code, True), done


def test_junit_has_a_case_for_each_version_with_each_wrong_answer(vectors: Path, tmp_path: Path) -> None:
    mockraft("vectors", str(vectors), "--check", saying(*[ERROR] * 4), "--junit", str(tmp_path / "run.xml"))
    case = ET.parse(tmp_path / "run.xml").getroot()[0][0]
    assert (case.get("classname"), case.get("name")) == (f"vectors.{NAME}", f"{NAME} v0 of 4.4.0")
    assert case[0].get("message") == "3 of 4 answers are not Kafka's"
    assert str(case[0].text).count("refused: it ends") == 3


@each_row(
    ("file", "content", "options", "expected"),
    [
        ("manifest.json", None, (), "is there, without a manifest.json"),
        ("manifest.json", '{"format": 2}', (), "has format 2; this mockraft reads format 1"),
        ("manifest.json", '{"format": 1, "releases": {"../..": []}}', (), "'../..', which is neither"),
        ("manifest.json", "[]", (), "is no manifest of vectors"),
        (f"4.4.0/{NAME}.jsonl", None, (), "cannot be read: No such file or directory"),
        (f"4.4.0/{NAME}.jsonl", "{}\n", (), "was changed"),
        (None, None, ("--release", "3.9"), "has 4.4.0 and not 3.9.2"),
        (None, None, ("--only", "Fetch"), "no message in"),
        (None, None, ("--junit", "x.xml"), "--junit: it has the verdicts of --check"),
        (None, None, ("--check", "'"), "--check: No closing quotation"),
    ],
)
def test_a_folder_or_option_that_cannot_be_used_is_one_line(
    file: str | None, content: str | None, options: tuple[str, ...], expected: str, vectors: Path, tmp_path: Path
) -> None:
    if file is not None:
        kept = (vectors / file).read_text()
        (vectors / file).unlink() if content is None else (vectors / file).write_text(content)
    done = mockraft("vectors", str(vectors), *options)
    if file is not None:
        (vectors / file).write_text(kept)
    assert done.exit_code == 2
    assert expected in one_line(done.output)
