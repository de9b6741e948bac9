"""An accelerator for mockraft: the codec, and loops over captures, in C.

mockraft alone is pure Python. With this package installed, each generated class gets other functions for `read`,
`read_from` and `write` when its module is imported; the classes, their fields and values stay the same. Nothing is
generated per message: the C code follows a plan, a list of fields with their kinds and slots, which is made from a
table in the generated module when a version first occurs.

Idea: the C code never words an error. Whatever is not plainly right (a cut field, a null where none is allowed, text
that is not UTF-8, a number out of range, unknown types, unknown tagged fields on writing) it leaves to the pure
function, which reads or writes the same again and returns the value or raises the error.

Invariant: what the C code returns, the pure function would return too, in value and offset. The differential tests in
mockraft's `tests/speed` compare both over mutated messages, a million of them in `make soak`.

`MOCKRAFT_CODEC=pure` turns the accelerator off, `MOCKRAFT_CODEC=speed` refuses to start without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# All modules at once: one that cannot be loaded is found when the path is chosen (`mockraft.wire.message`).
from mockraft_speed import _captures as _captures
from mockraft_speed._codec import Codec, paths
from mockraft_speed.plans import Planner, Row

__version__ = "0.2.0"

TABLE_FORMAT = 3
"""The format of the generated modules' tables that this version reads."""


def accelerate(structs: tuple[tuple[str, tuple[Row, ...]], ...], namespace: Mapping[str, Any]) -> None:
    """Replace the functions of a generated message class.

    `structs` are the message's structs with their fields, the message first; `namespace` is the module's.
    """
    planner = Planner(structs, namespace)
    cls = planner.message
    codec = Codec(planner, cls.min_version, cls.max_version)
    cls.read, cls.read_from, cls.write = paths(codec, cls.read, cls.read_from, cls.write)
