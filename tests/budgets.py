"""Budgets of long tests: small in `make test`, full in `make soak` (MOCKRAFT_BUDGET=soak).

The documents quote the full ones: 11,000 fuzz steps at seven levels, 10,000 seeds of clusters, 100,000 mutants.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

SOAKS = os.environ.get("MOCKRAFT_BUDGET", "test") == "soak"
"""True if this run has the full budgets."""

soak = pytest.mark.soak
"""Mark a test, or a `pytest.param`, that only `make soak` runs."""


def budget(test: T, full: T) -> T:
    """Return the budget of this run."""
    return full if SOAKS else test


def sample(rows: Sequence[T], count: int) -> Sequence[T]:
    """Return as many rows of a table, from all over it; all in `make soak`."""
    return rows if SOAKS or len(rows) <= count else [rows[index * len(rows) // count] for index in range(count)]
