"""Check that docs/evidence/attacks.md names existing tests."""

import re

import pytest

from .named_tests import ROOT, names_in

pytestmark = pytest.mark.one_python

NAMED = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", (ROOT / "docs" / "evidence" / "attacks.md").read_text())


def test_named_tests_exist() -> None:
    assert len(NAMED) > 20
    assert [
        f"{path}::{name}" for path, name in NAMED if not (names_in(path) if not name else name in names_in(path))
    ] == []
