"""Message specs of a proposal as classes at run time: the same generator, without files.

A folder holds Kafka-style JSON specs, one message per file, in any sub-folders; a file named like one of Kafka's
messages replaces it, and one equal to Kafka's changes nothing. Its optional `SOURCE.toml` lists fields that were only
renamed (`[renamed]`, `"AssignReplicasToDirsRequest.TopicData.TopicName" = "TopicId"`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from types import MemberDescriptorType, ModuleType
from typing import NamedTuple

from mockraft.codegen.check import check
from mockraft.codegen.emit_module import emit_module
from mockraft.codegen.merge import merge
from mockraft.codegen.parse import parse, parse_json
from mockraft.codegen.spec import MessageSpec, SpecError
from mockraft.codegen.versions import HIGHEST
from mockraft.files.given_files import files_below, read_text
from mockraft.files.trees import TreeError, toml_tree
from mockraft.releases import NEWEST, release
from mockraft.wire import schema_files
from mockraft.wire.json_form import Json
from mockraft.wire.message import Message, Struct, field_names
from mockraft.wire.names import attribute
from mockraft.wire.overlay import SHIPPED, OverlaidMessage, Overlay

SOURCE_FILE = "SOURCE.toml"


class SpecFile(NamedTuple):
    """One file: the folder it was found in, its path below that, its text."""

    folder: str
    path: str
    text: str

    @property
    def source(self) -> str:
        """The file's path for display."""
        return f"{self.folder}/{self.path}"


def load(folders: Iterable[Path]) -> Overlay:
    """Return the overlay of some folders. If several change one message, the changes are merged.

    Raises SpecError with the file, the field and the fault: no JSON, no message spec, a request without its response,
    conflicting changes of two folders. The same files give the same overlay object on every call.
    """
    found: list[SpecFile] = []
    for folder in folders:
        if not folder.is_dir():
            raise SpecError(f"{folder}: there is no such folder; want one with Kafka-style message specs (*.json)")
        try:
            paths = sorted(path for path in files_below(folder) if path.suffix == ".json")
        except OSError as error:
            raise SpecError(f"{error.filename}: cannot be read: {error.strerror}") from None
        source = folder / SOURCE_FILE
        if not paths and not source.is_file():
            raise SpecError(f"{folder}: there is no message spec (*.json) in it")
        paths += [source] if source.is_file() else []
        found += [SpecFile(str(folder), path.relative_to(folder).as_posix(), _text(path)) for path in paths]
    return _overlay(tuple(found))


@cache
def _overlay(files: tuple[SpecFile, ...]) -> Overlay:
    trees, sources = _trees([file for file in files if file.path != SOURCE_FILE])
    renamed: dict[str, str] = {}
    for file in files:
        if file.path == SOURCE_FILE:
            renamed |= _renamed(file)
    digest = hashlib.sha256(repr(files).encode()).hexdigest()[:16]
    specs = {}
    for name, tree in trees.items():
        spec = parse(json.dumps(tree), sources[name])
        if not spec.valid_versions.empty:
            check(spec)
            specs[name] = spec
    _check_numbers(specs)
    overlay = Overlay(overlaid(spec, trees[name], digest) for name, spec in specs.items())
    for name, spec in specs.items():
        for struct in (spec.body, *spec.structs.values()):
            _answer_to_shipped_names(overlay.module(name), name, struct.name, renamed)
    _check_pairs(specs, overlay)
    return overlay


def _trees(files: list[SpecFile]) -> tuple[dict[str, dict[str, Json]], dict[str, str]]:
    """Return the merged specs by message, without those equal to Kafka's, and the source of each."""
    trees: dict[str, dict[str, Json]] = {}
    sources: dict[str, str] = {}
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        tree = parse_json(file.text, file.source)
        name = parse(file.text, file.source).name
        other = seen.setdefault((file.folder, name), file.source)
        if other != file.source:
            raise SpecError(f"{file.source}: {other} describes {name} too; keep one of the two")
        shipped = _shipped_trees().get(name, {})
        if tree != shipped:
            if name in trees:
                tree = merge(shipped, trees[name], tree, f"{sources[name]} and {file.source}")
            trees[name], sources[name] = tree, file.source
    return trees, sources


@cache
def _shipped_trees() -> dict[str, dict[str, Json]]:
    trees = [parse_json(text, path) for path, text in release(NEWEST).specs.items()]
    return {str(tree["name"]): tree for tree in trees}


def _check_numbers(specs: Mapping[str, MessageSpec]) -> None:
    """Check that every request, response and record has a number, unique within its kind."""
    taken: dict[tuple[str, int], str] = {}
    for name, spec in specs.items():
        if spec.kind not in ("request", "response", "metadata"):
            continue
        if spec.kind != "metadata" and not name.endswith(spec.kind.capitalize()):
            raise SpecError(f"{spec.source}: a {spec.kind} has to be called {name}{spec.kind.capitalize()}")
        if not 0 <= spec.api_key <= HIGHEST:
            raise SpecError(f"{spec.source}: {name} needs an apiKey from 0 to {HIGHEST}")
        other = taken.setdefault((spec.kind, spec.api_key), name)
        if other != name:
            raise SpecError(f"{spec.source}: {name} has the apiKey {spec.api_key} of {other}; choose another one")


def _check_pairs(specs: Mapping[str, MessageSpec], overlay: Overlay) -> None:
    """Check that every request has a response with the same versions."""
    for name, spec in specs.items():
        if spec.kind not in ("request", "response"):
            continue
        what, others = ("response", overlay.responses) if spec.kind == "request" else ("request", overlay.requests)
        if spec.api_key not in others:
            missing = name.removesuffix(spec.kind.capitalize()) + what.capitalize()
            raise SpecError(f"{spec.source}: {name} has no {what}: add {missing}.json with apiKey {spec.api_key}")
        request, response = overlay.request(spec.api_key), overlay.response(spec.api_key)
        if not (response.min_version <= request.min_version and request.max_version <= response.max_version):
            raise SpecError(
                f"{spec.source}: {request.__name__} has versions {request.min_version} to {request.max_version}, but "
                f"{response.__name__} {response.min_version} to {response.max_version}: give both one validVersions"
            )


def overlaid(spec: MessageSpec, tree: dict[str, Json], package: str) -> OverlaidMessage:
    """Return a message of an overlay; `package` tells its modules from those of other overlays."""
    schema = schema_files.parse(tree)
    return OverlaidMessage(schema, partial(_compiled, spec, schema, package), _listeners(spec, tree))


def _compiled(spec: MessageSpec, schema: schema_files.Schema, package: str) -> type[Message]:
    """Compile the class of a spec into a module of its own, without a file."""
    name = f"mockraft.overlays.{package}.{attribute(spec.name)}"
    module = ModuleType(name)
    module.__dict__["SCHEMA"] = schema
    sys.modules[name] = module
    # A path may hold anything, and what is generated quotes its source.
    source = emit_module(dataclasses.replace(spec, source=f"{spec.name}.json"))
    exec(compile(source, f"<{spec.source}>", "exec"), module.__dict__)
    cls: type[Message] = getattr(module, spec.name)
    return cls


def _listeners(spec: MessageSpec, tree: dict[str, Json]) -> tuple[str, ...]:
    found = tree.get("listeners", [])
    names = tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()
    if not isinstance(found, list) or len(names) < len(found):
        raise SpecError(f'{spec.source}: {spec.name}: listeners: want a list such as ["controller"], not {found!r}')
    return names


def _answer_to_shipped_names(module: ModuleType, message: str, struct: str, renamed: Mapping[str, str]) -> None:
    """Give a struct Kafka's own field names too, for callers that only know those: renamed and constant fields."""
    cls: type[Struct] = getattr(module, struct)
    for key, old in renamed.items():
        if key.startswith(f"{message}.{struct}."):
            field = vars(cls).get(attribute(key.rpartition(".")[2]))
            if not isinstance(field, MemberDescriptorType) or hasattr(cls, attribute(old)):
                raise SpecError(f"{SOURCE_FILE}: renamed: {key} = {old!r}: want a field of this struct and one it lost")
            setattr(cls, attribute(old), field)
    if message in SHIPPED.message_names or message in SHIPPED.record_names:
        shipped = getattr(SHIPPED.module(message), struct, None)
        if shipped is not None:
            defaults = shipped()
            for name in field_names(shipped):
                if not hasattr(cls, name):
                    default = getattr(defaults, name)
                    setattr(cls, name, () if isinstance(default, list) else default)


def _renamed(file: SpecFile) -> dict[str, str]:
    try:
        found = toml_tree(file.text).get("renamed", {})
    except TreeError as error:
        raise SpecError(f"{file.source}: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
        raise SpecError(f'{file.source}: renamed: want lines like "Message.Struct.NewName" = "OldName"')
    return found


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
