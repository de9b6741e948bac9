"""The source of a pytest test for the stubs and faults of a controller."""

from __future__ import annotations

import keyword
import pprint
import re
from collections.abc import Mapping, Sequence
from textwrap import indent

from mockraft.wire.json_form import Json
from mockraft.wire.names import did_you_mean

_ACTIVE = ("enabled", "priority", "match", "trigger", "actions", "scenario", "kind", "params", "toxicity", "seed")
"""What of the JSON of a stub or fault says what it does; the rest counts its calls."""

_DEFAULTS: Mapping[str, Json] = {"enabled": True, "priority": 0, "toxicity": 1, "seed": 0}

_WIDTH = 100

_EXPECTED = ("api", "brokerId", "atLeast")


def test_source(
    name: str,
    brokers: Sequence[int],
    stubs: Sequence[Mapping[str, Json]],
    faults: Sequence[Mapping[str, Json]],
    expected: Sequence[Mapping[str, Json]],
) -> str:
    """Return a test that sets up stubs and faults, starts simulated brokers and expects requests.

    Each of `expected` has `api` and optionally `brokerId` and `atLeast` (1). ValueError for a name that is no
    identifier, and for what is not of its type: an assistant may pass on what others wrote.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name in lower case with underscores")
    body = [_call("mockraft.add", each) for each in stubs]
    body += [_call("mockraft.faults.add", each) for each in faults]
    body += [f"mockraft.start_broker({_number(each, 'a broker')}, wait=None)" for each in brokers]
    body += map(_expectation, expected)
    lines = ["from mockraft import SyncController", "", "", f"def test_{name}(mockraft: SyncController) -> None:"]
    lines += ["    " + line for statement in body or ["assert mockraft.bootstrap"] for line in statement.splitlines()]
    return "\n".join(lines) + "\n"


def _call(function: str, tree: Mapping[str, Json]) -> str:
    given = {name: tree[name] for name in _ACTIVE if tree.get(name) not in (None, {}, [])}
    active = {name: value for name, value in given.items() if value != _DEFAULTS.get(name)}
    literal = pprint.pformat(active, width=_WIDTH, sort_dicts=False)
    return f"{function}({literal})" if "\n" not in literal else f"{function}(\n{indent(literal, '    ')}\n)"


def _expectation(wanted: Mapping[str, Json]) -> str:
    if unknown := next((name for name in wanted if name not in _EXPECTED), None):
        raise ValueError(f"expected: there is no {unknown!r}; {did_you_mean(unknown, _EXPECTED)}")
    api, broker_id = wanted.get("api"), wanted.get("brokerId")
    if not isinstance(api, str):
        raise ValueError(f"expected: api is a name, not {api!r}")
    sender = "" if broker_id is None else f", broker_id={_number(broker_id, 'brokerId')}"
    return f"mockraft.wait_for({api!r}, n={_number(wanted.get('atLeast', 1), 'atLeast')}{sender})"


def _number(value: object, what: str) -> int:
    if type(value) is not int:
        raise ValueError(f"{what} is a number, not {value!r}")
    return value
