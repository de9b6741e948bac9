"""Files of stubs, faults and a plan: JSON, or YAML where PyYAML is installed.

stubs:
- match: {api: BrokerHeartbeat, brokerId: 1}
    trigger: {times: 2}
    actions: [{injectError: NOT_CONTROLLER}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockraft.files.trees import read_tree
from mockraft.server.stubs.errors import StubError, unknown
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.stubs.stub import Stub

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree

PARTS: Final = ("stubs", "faults", "plan")


@dataclass(frozen=True)
class StubFile:
    """The contents of a file: its stubs, and the JSON of its faults and of its plan."""

    stubs: list[Stub] = field(default_factory=list)
    faults: Sequence[Json] = ()
    plan: Sequence[Json] | Mapping[str, Json] = ()

    def to_json(self) -> Tree:
        """Return the file as a JSON tree."""
        return {"stubs": [each.to_json() for each in self.stubs], "faults": self.faults, "plan": self.plan}


def read_stub_file(path: Path) -> StubFile:
    """Read a file, as YAML if its name ends in .yaml or .yml, else as JSON. Raise GivenFileError."""
    given = read_tree(path)
    try:
        return stub_file_from_json({} if given.tree is None else given.tree)  # an empty file, or one of comments
    except StubError as wrong:
        raise given.error(wrong, wrong.field) from None


def stub_file_from_json(tree: Json) -> StubFile:
    """Return the stubs, faults and plan of a JSON tree; a list alone is stubs. Raise StubError that names the field."""
    if isinstance(tree, list):
        tree = {"stubs": tree}
    if not isinstance(tree, Mapping):
        raise StubError(f"expected an object with {', '.join(PARTS)}, got {tree!r}")
    for name in tree:
        if name not in PARTS:
            raise StubError(unknown("part of a stub file", name, PARTS), str(name))
    plan = tree.get("plan")
    stubs: list[Stub] = []
    taken: set[str] = set()
    for index, each in enumerate(_listed(tree, "stubs")):
        try:
            stubs.append(Stub.from_json(each))
        except StubError as wrong:
            raise wrong.within(f"stubs[{index}]") from None
        if stubs[-1].id in taken:
            raise StubError(f"there is a stub {stubs[-1].id!r} already", f"stubs[{index}].id")
        taken |= {stubs[-1].id} - {""}
    faults, checked = _listed(tree, "faults"), Faults()
    for index, fault in enumerate(faults):
        try:
            checked.add_json(fault)
        except ValueError as wrong:
            raise StubError(str(wrong), f"faults[{index}]") from None
    return StubFile(stubs, faults, plan if isinstance(plan, Mapping) else _listed(tree, "plan"))


def _listed(tree: Mapping[str, Json], name: str) -> Sequence[Json]:
    part = tree.get(name)
    if part is not None and not isinstance(part, list):
        raise StubError(f"expected a list, got {part!r}", name)
    return part or ()
