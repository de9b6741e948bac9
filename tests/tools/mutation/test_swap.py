"""A function gets the code of another source, and so do those that hold it already."""

import gc
from types import ModuleType
from typing import Any

import pytest

from tools.mutation.coverage_by_test import CoverageByTest
from tools.mutation.swap import live_functions, swap

SOURCE = """\
LIMIT = 3

def below(number: int) -> bool:
    return number < LIMIT

def make():
    def inner(number):
        return number + 1
    return inner

closure = make()

class Box:
    size = 1

    @property
    def doubled(self):
        return self.size * 2
"""


@pytest.fixture
def module() -> ModuleType:
    made = ModuleType("mutated")
    exec(compile(SOURCE, "mutated.py", "exec"), made.__dict__)
    return made


def changed(old: str, new: str) -> int:
    assert SOURCE.count(old) == 1
    return swap(live_functions({"mutated"}), "mutated", SOURCE, SOURCE.replace(old, new), "mutated.py")


@pytest.mark.parametrize(
    ("old", "new", "name", "expected"),
    [
        ("number < LIMIT", "number <= LIMIT", "below", True),
        ("number + 1", "number - 1", "closure", 2),
        ("self.size * 2", "self.size / 2", "doubled", 0.5),
    ],
)
def test_functions_closures_and_properties_run_other_code(
    module: Any, old: str, new: str, name: str, expected: object
) -> None:
    box, held = module.Box(), vars(module).get(name)
    assert changed(old, new) >= 1
    assert (held(3) if held else box.doubled) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("number: int", "number: str"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("size = 1", "size = 2"),
        ("number < LIMIT", "(number < LIMIT)"),
    ],
)
def test_changes_outside_functions_and_without_effect_are_none(module: Any, old: str, new: str) -> None:
    assert changed(old, new) == 0
    assert module.below(2)
    assert not module.below(3)


def test_lines_are_recorded_by_test(module: Any) -> None:
    gc.collect()
    coverage = CoverageByTest({"mutated"})
    with coverage.record(7):
        module.below(1)
    with coverage.record(8):
        module.closure(1)
    assert coverage.of_lines("mutated", 1, 20) == {7, 8}
    assert coverage.of_lines("mutated", 4, 4) == {7}
    assert coverage.of_lines("mutated", 8, 8) == {8}
    assert coverage.of_lines("mutated", 9, 20) == set()
