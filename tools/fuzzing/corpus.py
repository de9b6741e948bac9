"""The committed inputs: one file a target, one input a line in base64, smallest first."""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from collections.abc import Collection
from pathlib import Path
from random import Random

from mockraft.vectors.bodies import random_body
from mockraft.wire import records
from mockraft.wire.json_form import from_json

from tests.wire.conftest import all_pairs, generated_class
from tools.mutation.coverage_by_test import CoverageByTest, Line

from .targets import TARGETS

GENERATED = ("mockraft.wire.messages.", "mockraft.wire.records.")
INPUTS = Path(__file__).parent / "inputs"


def file_of(target: str) -> Path:
    """Return the file of a target's inputs."""
    return INPUTS / f"{target}.base64"


def read_corpus(target: str) -> list[bytes]:
    """Return the committed inputs of a target."""
    return [b64decode(line) for line in file_of(target).read_text().split()]


def write_corpus(target: str, inputs: Collection[bytes]) -> None:
    """Replace the committed inputs of a target."""
    lines = [b64encode(each).decode() for each in sorted(inputs, key=lambda each: (len(each), each))]
    file_of(target).write_text("".join(f"{line}\n" for line in lines))


def messages_of_all_versions() -> list[bytes]:
    """Return inputs of codec with every message in every version, from which fuzzing starts."""
    rng, found = Random(1), []
    for name, version in all_pairs():
        cls = generated_class(name)
        kind = 2 if name in records.NAMES else 1 - name.endswith("Request")
        if cls.api_key >= 0:
            bodies = (random_body(name, version, rng, manner) for manner in ("empty", "plain", "mixed"))
            found += [
                bytes((kind, cls.api_key, version)) + from_json(cls, each, version).write(version) for each in bodies
            ]
    return found


def smallest(target: str, inputs: Collection[bytes]) -> list[bytes]:
    """Return few small inputs that run every line of mockraft that all inputs run, save those of single messages."""
    modules = {name for name in sys.modules if name.startswith("mockraft.") and not name.startswith(GENERATED)}
    coverage = CoverageByTest(modules)
    by_size = sorted(set(inputs), key=lambda each: (len(each), each))
    for index, data in enumerate(by_size):
        with coverage.record(index):
            TARGETS[target](data)
    missing: set[Line] = set(coverage.tests)
    kept = []
    # Rare lines first: an input that is the only one for a line is needed anyway.
    for line in sorted(coverage.tests, key=lambda each: len(coverage.tests[each])):
        if line in missing:
            index = min(coverage.tests[line])
            kept.append(by_size[index])
            missing -= {each for each, tests in coverage.tests.items() if index in tests}
    return kept
