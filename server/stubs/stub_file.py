"""Files of stubs, faults and a plan: JSON, or YAML where PyYAML is installed.

stubs:
- match: {api: BrokerHeartbeat, brokerId: 1}
    trigger: {times: 2}
    actions: [{injectError: NOT_CONTROLLER}]
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockraft.server.stubs.errors import StubError, unknown
from mockraft.server.stubs.faults.registry import Faults
from mockraft.server.stubs.stub import Stub

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json, Tree
    from yaml import Node

PARTS: Final = ("stubs", "faults", "plan")

YAML_NODES_MAX: Final = 1_000_000
"""Maximum number of values in a YAML file, after every alias (`*name`) is expanded."""
_KEY_TAGS: Final = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


class StubFileError(ValueError):
    """A file cannot be used; the text has the file, the place in it and the reason."""


class NoYamlError(StubFileError):
    """A YAML file cannot be read without PyYAML."""


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
    """Read a file, as YAML if its name ends in .yaml or .yml, else as JSON. Raise StubFileError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StubFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix.lower() in (".yaml", ".yml"):
        tree, root = _yaml(path, text)
    else:
        root = None
        try:
            tree = json.loads(text, object_pairs_hook=_without_doubles)
        except json.JSONDecodeError as error:
            raise StubFileError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error
        except StubError as error:
            raise StubFileError(f"{path}: {error}") from None
        except RecursionError:
            raise StubFileError(f"{path}: not JSON: it is nested too deep") from None
    try:
        return stub_file_from_json({} if tree is None else tree)  # an empty file, or one of comments
    except StubError as wrong:
        line = "" if root is None else f", line {_line(root, wrong.field)}"
        raise StubFileError(f"{path}{line}: {wrong}") from None


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


def _without_doubles(pairs: list[tuple[str, Json]]) -> Tree:
    tree = dict(pairs)
    for name in tree:
        if len(tree) < len(pairs) and [each for each, _ in pairs].count(name) > 1:
            raise StubError("the key is there twice", name)
    return tree


def _yaml(path: Path, text: str) -> tuple[Json, Node | None]:
    """Return the tree of a YAML text, and its root node, which knows lines."""
    try:
        import yaml
    except ImportError:
        about = "YAML needs PyYAML: pip install 'mockraft[admin]', or write the file as JSON"
        raise NoYamlError(f"{path}: {about}") from None
    try:
        loader = yaml.SafeLoader(text)
        loader.name = str(path)
        root: Node | None = loader.get_single_node()
        tree = None
        if root is not None:
            _check_size(root, {})
            tree = loader.construct_document(root)
    except (yaml.YAMLError, ValueError) as error:
        raise StubFileError(f"{path}: not YAML: {error}") from error
    except RecursionError:
        raise StubFileError(f"{path}: not YAML: it is nested too deep") from None
    return tree, root


def _line(root: Node, field: str) -> int:
    """Return the line of a field (`stubs[0].match`), or of the innermost part of its path that is found."""
    import yaml

    node, line = root, root.start_mark.line
    for part in re.findall(r"[^.\[\]]+", field):
        if isinstance(node, yaml.SequenceNode) and part.isdecimal():
            node = node.value[int(part)]
            line = node.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            found = [(key.start_mark.line, value) for key, value in node.value if key.value == part]
            if not found:
                break
            line, node = found[0]
    return line + 1


def _check_size(node: Node, sizes: dict[int, int]) -> int:
    """Count the values of a YAML node; `sizes` has those of earlier nodes, 0 for the open ones. Raise ValueError."""
    size = sizes.get(id(node))
    if size is None:
        sizes[id(node)] = 0
        inner = () if isinstance(node.value, str) else node.value
        names = [each[0].value for each in inner if isinstance(each, tuple)]
        if doubles := [each[0] for each in inner if isinstance(each, tuple) and names.count(each[0].value) > 1]:
            raise ValueError(f"line {doubles[-1].start_mark.line + 1}: the key {doubles[-1].value!r} is there twice")
        for key in (each[0] for each in inner if isinstance(each, tuple)):
            if key.tag not in _KEY_TAGS:
                # YAML reads a plain `on`, `yes` or `1` as a boolean or a number, which JSON has not as a key.
                raise ValueError(f"line {key.start_mark.line + 1}: the key {key.value!r} is no text: put it in quotes")
        parts = [part for each in inner for part in (each if isinstance(each, tuple) else (each,))]
        size = sizes[id(node)] = 1 + sum(_check_size(part, sizes) for part in parts)
    if size == 0:
        raise ValueError(f"line {node.start_mark.line + 1}: an alias refers to a node that contains it")
    if size > YAML_NODES_MAX:
        raise ValueError(f"line {node.start_mark.line + 1}: too large: {size:,} values with its aliases expanded")
    return size
