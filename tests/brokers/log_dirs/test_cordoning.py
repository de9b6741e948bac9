"""Values of cordoned.log.dirs and their meaning."""

from __future__ import annotations

import pytest
from mockraft.brokers.log_dirs.cordoning import CordoningError, cordoned_paths

PATHS = ("/d/0", "/d/1", "/d/2")


@pytest.mark.parametrize(
    ("value", "cordoned"),
    [
        ("", ()),
        ("  ", ()),
        ("/d/1", ("/d/1",)),
        (" /d/2 , /d/0", ("/d/0", "/d/2")),
        ("/d/1,/d/1", ("/d/1",)),
        ("*", PATHS),
        (" * ", PATHS),
    ],
)
def test_names_the_cordoned_dirs(value: str, cordoned: tuple[str, ...]) -> None:
    assert cordoned_paths(value, PATHS) == set(cordoned)


@pytest.mark.parametrize("value", ["/nope", "/d/0,/nope", "/d/0/", "d/0", "/d/0,,/d/1"])
def test_a_dir_that_is_not_in_log_dirs_spoils_the_whole_value(value: str) -> None:
    with pytest.raises(CordoningError, match=r"must be present in log\.dirs or log\.dir\. Missing entries : "):
        cordoned_paths(value, PATHS)


def test_a_star_stands_alone() -> None:
    with pytest.raises(CordoningError, match=r"is set to \*, it must not contain other values"):
        cordoned_paths("*,/d/0", PATHS)
