"""Tests that walk the rows of a table: collecting an item takes longer than most rows run."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest


def each_row(
    names: str | tuple[str, ...], rows: Iterable[Any] | Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for every row, as one item, and report all rows that fail; a mapping gives rows their names.

    Fixtures are the same for all rows, except that each has a `tmp_path` of its own: a test that changes another
    fixture is parametrised by pytest.
    """
    fields = (names,) if isinstance(names, str) else names
    table = list(rows.items()) if isinstance(rows, Mapping) else [(repr(row), row) for row in rows]
    assert table, "a table without rows"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def walk(*args: Any, **fixtures: Any) -> None:
            failures: list[BaseException] = []
            for number, (name, row) in enumerate(table):
                values = dict(zip(fields, (row,) if isinstance(names, str) else row, strict=True))
                try:
                    test(*args, **_own_folder(fixtures, number), **values)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"row: {name}")
                    failures.append(error)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        signature = inspect.signature(test)
        left = [each for each in signature.parameters.values() if each.name not in fields]
        vars(walk)["__signature__"] = signature.replace(parameters=left)
        return walk

    return decorate


def _own_folder(fixtures: dict[str, Any], row: int) -> dict[str, Any]:
    if "tmp_path" not in fixtures:
        return fixtures
    folder: Path = fixtures["tmp_path"] / f"row-{row}"
    folder.mkdir()
    return fixtures | {"tmp_path": folder}
