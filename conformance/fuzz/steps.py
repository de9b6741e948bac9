"""A step: one request in readable JSON, with symbols for each controller's own ids, epochs and offsets.

Symbols are strings that begin with "$", and may end in +n or -n if they stand for a number:

    $cluster                        the cluster id
    $topic:NAME                     id of the topic of that name; of no topic if there is none
    $epoch:ID                       the broker's epoch
    $registered:ID                  offset of the broker's last RegisterBrokerRecord
    $end                            offset of the last record read so far
    $leaderEpoch:TOPIC:PARTITION    the partition's leader epoch
    $partitionEpoch:TOPIC:PARTITION
    $dir:ID:N                       the broker's N-th log directory, another one in each run
    $hmac:N                         HMAC of the N-th delegation token
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mockraft.wire import messages, uuids
from mockraft.wire.schema_files import FieldSpec, StructSpec, schema

Tree = dict[str, Any]


@dataclass
class Step:
    """One request as JSON (Kafka's names). `principal`: it is sent in an Envelope, from this principal.

    `is_chance`: each controller draws the replica placement, so only its shape is compared; the `cleanup` (requests
    that remove the effect) follows at once, as part of the step.
    """

    api: str
    version: int
    body: Tree
    principal: str | None = None
    is_chance: bool = False
    cleanup: list["Step"] = field(default_factory=list)

    def to_json(self) -> Tree:
        """Return the step as JSON, without default values."""
        tree: Tree = {"api": self.api, "version": self.version, "body": self.body}
        if self.principal is not None:
            tree["principal"] = self.principal
        if self.is_chance:
            tree["isChance"] = True
        if self.cleanup:
            tree["cleanup"] = [step.to_json() for step in self.cleanup]
        return tree

    @classmethod
    def from_json(cls, tree: Tree) -> "Step":
        """Build the step from the output of `to_json`."""
        cleanup = [cls.from_json(each) for each in tree.get("cleanup", [])]
        return cls(
            tree["api"], tree["version"], tree["body"], tree.get("principal"), tree.get("isChance", False), cleanup
        )


def api_key(api: str) -> int:
    """Return the API key by Kafka's name of the API, such as "CreateTopics"."""
    return schema(f"{api}Request").api_key


def api_name(key: int) -> str:
    """Return the API's name in a `Step`."""
    return messages.request(key).__name__.removesuffix("Request")


def request_class(api: str) -> Any:
    """Return the request class."""
    return messages.request(api_key(api))


def fitted(api: str, version: int, body: Tree) -> Tree:
    """Return `body` with exactly the fields of the version: missing ones get their default."""
    cls = request_class(api)
    return _fitted(cls, schema(f"{api}Request").root, version, body)


def _fitted(cls: type, spec: StructSpec, version: int, tree: Tree) -> Tree:
    known = {each.json_name for each in spec.fields}
    if unknown := tree.keys() - known:
        raise ValueError(f"{spec.name} has no {sorted(unknown)}")
    made: Tree = {}
    for each in spec.fields:
        if not each.versions.covers(version):
            continue
        if each.json_name not in tree:
            if not each.tagged.covers(version):
                made[each.json_name] = _default(cls, each)
            continue
        value = tree[each.json_name]
        if each.struct is not None and value is not None:
            inner = getattr(sys.modules[cls.__module__], each.struct.name)
            if each.is_array:
                value = [_fitted(inner, each.struct, version, one) for one in value]
            else:
                value = _fitted(inner, each.struct, version, value)
        made[each.json_name] = value
    return made


@cache
def _defaults(cls: type) -> Any:
    return getattr(sys.modules[cls.__module__], cls.__name__)()


def _default(cls: type, each: FieldSpec) -> Any:
    value = getattr(_defaults(cls), each.attribute)
    if isinstance(value, bytes):
        return uuids.text_of(value) if each.kind == "uuid" else ""
    return [] if each.is_array and value is not None else value


def replaced(tree: Any, replace: Callable[[str], Any]) -> Any:
    """Return the tree with `replace` applied to every string."""
    if isinstance(tree, dict):
        return {key: replaced(value, replace) for key, value in tree.items()}
    if isinstance(tree, list):
        return [replaced(value, replace) for value in tree]
    return replace(tree) if isinstance(tree, str) else tree


def places(tree: Any, spec: StructSpec, version: int) -> Iterator[tuple[Any, Any, FieldSpec]]:
    """Yield every place of the tree: (container, key, field), the elements of an array by their index."""
    for each in spec.fields:
        if each.json_name not in tree:
            continue
        yield tree, each.json_name, each
        value = tree[each.json_name]
        if value is None:
            continue
        if each.is_array:
            for index in range(len(value)):
                yield value, index, each
        if each.struct is not None:
            for inner in value if each.is_array else [value]:
                yield from places(inner, each.struct, version)
