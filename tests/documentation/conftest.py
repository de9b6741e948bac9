"""Blocks run in a folder of their own, which has the examples and the captures of a clone and nothing else."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from .blocks import ROOT


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave blocks that import Spark to the environment that has it."""
    is_block = collection_path.suffix == ".py" and find_spec("pyspark") is None
    return True if is_block and "pytest.mark.spark" in collection_path.read_text().partition("\n")[0] else None


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("examples", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
