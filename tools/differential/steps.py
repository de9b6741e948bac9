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

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from mockraft.conformance.requests import Tree
from mockraft.wire import messages
from mockraft.wire.message import Message
from mockraft.wire.schema_files import FieldSpec, StructSpec


@dataclass
class FuzzStep:
    """One request as JSON (Kafka's names). `principal`: it is sent in an Envelope, from this principal.

    `is_chance`: each controller draws the replica placement, so only its shape is compared; the `cleanup` (requests
    that remove the effect) follows at once, as part of the step.
    """

    api: str
    version: int
    body: Tree
    principal: str | None = None
    is_chance: bool = False
    cleanup: list["FuzzStep"] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the step as a line of JSON, without default values."""
        tree = {name: value for name, value in asdict(self).items() if value or name in ("version", "body")}
        return json.dumps(tree, ensure_ascii=False)

    @classmethod
    def from_json(cls, tree: Tree) -> "FuzzStep":
        """Build the step from the JSON of its text."""
        return cls(**{**tree, "cleanup": [cls(**each) for each in tree.get("cleanup", ())]})


def api_name(key: int) -> str:
    """Return the API's name in a `FuzzStep`."""
    return messages.request(key).__name__.removesuffix("Request")


def request_class(api: str) -> type[Message]:
    """Return the request class of an API's name in a `FuzzStep`. WireError if there is none."""
    return messages.by_name(f"{api}Request")


def replaced(tree: Any, replace: Callable[[str], str | int]) -> Any:
    """Return the tree with `replace` applied to every string."""
    if isinstance(tree, dict):
        return {key: replaced(value, replace) for key, value in tree.items()}
    if isinstance(tree, list):
        return [replaced(value, replace) for value in tree]
    return replace(tree) if isinstance(tree, str) else tree


def places(tree: Tree, spec: StructSpec, version: int) -> Iterator[tuple[Any, Any, FieldSpec]]:
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
