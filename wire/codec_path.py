"""The choice between the two paths of the codec: pure Python, and the C code of the package mockraft-speed.

`MOCKRAFT_CODEC` is `auto` (the default: C where it is installed), `pure`, or `speed` (C, or an ImportError). The choice
is made once, when the first message is imported.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TABLE_FORMAT = 2
"""The format of the tables `_FIELDS` in generated modules, and of what `mockraft.server` takes from the accelerator.

An accelerator for another one is not used.
"""

PATHS = ("auto", "pure", "speed")


def _choose() -> Callable[[Any, Any], None] | None:
    wanted = os.environ.get("MOCKRAFT_CODEC") or "auto"
    if wanted not in PATHS:
        raise ValueError(f"MOCKRAFT_CODEC={wanted}: want one of {', '.join(PATHS)}")
    if wanted == "pure":
        return None
    try:
        import mockraft_speed
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "mockraft_speed":
            if wanted == "auto":
                return None
            fault = "mockraft-speed is not installed: pip install 'mockraft[speed]' (in a clone: pip install ./speed)"
        else:
            fault = f"mockraft-speed cannot be used ({error}): install it again"
    else:
        if mockraft_speed.TABLE_FORMAT == TABLE_FORMAT:
            return mockraft_speed.accelerate
        fault = f"mockraft-speed {mockraft_speed.__version__} is for another mockraft: install both in one version"
    if wanted == "speed":
        raise ImportError(f"MOCKRAFT_CODEC=speed: {fault}")
    import warnings

    warnings.warn(f"{fault}; until then the codec runs in pure Python", RuntimeWarning, stacklevel=2)
    return None


accelerate = _choose()
"""Called at the end of each generated module with its `_FIELDS` and its namespace; None on the pure path."""

path = "pure" if accelerate is None else "speed"
"""The path in use."""
