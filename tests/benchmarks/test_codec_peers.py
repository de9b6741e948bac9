"""The codec's benchmark: libraries in other languages that are missing, and the prototype of the import time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def test_missing_compiler_of_another_language_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from codec_peers import other_languages

    def missing(_: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", "cargo")

    programs: dict[str, tuple[Callable[[str], str], str]] = {"kafka-protocol-rs": (missing, "kafka_protocol")}
    monkeypatch.setattr(other_languages, "PROGRAMS", programs)
    found, lines = other_languages.timings([])
    assert (found, lines) == ({}, ["kafka-protocol-rs was not measured: cargo is not installed."])


def test_prototype_of_the_import_time_reads_and_writes(tmp_path: Path) -> None:
    from codec_peers.import_times import CHECK, write_prototype

    write_prototype(tmp_path)
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
