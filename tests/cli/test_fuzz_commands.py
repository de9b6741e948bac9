"""`mockraft conformance fuzz`."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mockraft import Controller

from ..budgets import soak
from .cli import Result, invoke

SESSION_TIMEOUT_MS = 3_600_000


@pytest.fixture
def unlike() -> Iterator[list[str]]:
    """Addresses of two controllers, the second of which makes topics of three partitions."""
    with ExitStack() as stack:
        controllers = [
            stack.enter_context(Controller.sync(session_timeout_ms=SESSION_TIMEOUT_MS, num_partitions=partitions))
            for partitions in (1, 3)
        ]
        yield [controller.bootstrap for controller in controllers]


def run(*arguments: str) -> Result:
    return invoke("conformance", "fuzz", *arguments)


@soak
def test_difference_is_reported_with_its_reproduction_command(unlike: list[str], tmp_path: Path) -> None:
    addresses = ["--bootstrap", unlike[0], "--against", unlike[1]]
    saved = tmp_path / "found.jsonl"
    found = run(*addresses, "--seed", "3", "--steps", "3000", "--save", str(saved))
    assert found.exit_code == 1
    assert "CreateTopics differs in answer" in found.stdout
    assert f"again: mockraft conformance fuzz --bootstrap {unlike[0]} --against {unlike[1]} --seed " in found.stdout
    again = run(*addresses, "--replay", str(saved))
    assert again.exit_code == 1
    assert "CreateTopics differs in answer" in again.stdout


def test_absence_of_differences_is_reported(unlike: list[str]) -> None:
    same = run("--bootstrap", unlike[0], "--against", unlike[1], "--steps", "1")
    assert (same.exit_code, same.stdout) == (0, "1 steps, no difference\n")


def test_missing_controller_is_reported(unlike: list[str]) -> None:
    nobody = run("--bootstrap", unlike[0], "--against", "127.0.0.1:1")
    assert nobody.exit_code == 6
    assert "127.0.0.1:1" in nobody.stderr
