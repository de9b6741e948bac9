"""The C functions for captures of mockraft-speed, where the codec runs in C too; None on the pure path.

Each has a reference in Python (`walks`, `arrow_columns.pure_gather`) with the same results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockraft.wire import codec_path

if TYPE_CHECKING:
    from types import ModuleType


def _captures() -> ModuleType | None:
    if codec_path.path == "pure":
        return None
    from mockraft_speed import _captures

    return _captures


captures = _captures()
