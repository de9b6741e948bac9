"""The JSON schema of faults, made of the table of their kinds."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args, get_type_hints

from mockraft.server.admin.stub_schema import Schema, Tabled, plain_type
from mockraft.server.stubs.errors import camel
from mockraft.server.stubs.faults.every_kind import KINDS
from mockraft.server.stubs.faults.fault import ConnectionMatch
from mockraft.server.stubs.faults.kinds import REQUIRED, Kind, Parameter

_TYPES = {"int": "integer", "float": "number", "string": "string", "choice": "string", "bool": "boolean"}


def fault_schema() -> Schema:
    """The schema of a fault: one form for each kind."""
    return {
        "description": "A fault: a toxic of connections' bytes, or a preset of what a controller does wrong.",
        "oneOf": [_kind(kind) for kind in KINDS.values()],
    }


def _kind(kind: Kind) -> Schema:
    properties: Schema = {
        "id": {"type": "string", "description": "Made when it is left out."},
        "name": {"type": "string"},
        "kind": {"const": kind.name},
        "enabled": {"type": "boolean", "default": True},
        "params": _params(kind),
        "fired": {"type": "integer", "readOnly": True, "description": "How often it did something."},
        "error": {"type": "string", "readOnly": True, "description": "Why it could not be switched on."},
    }
    if kind.toxic is not None:
        properties |= {
            "match": _connections(),
            "toxicity": {"type": "number", "minimum": 0, "maximum": 1, "default": 1, "description": "Share of them."},
            "seed": {"type": "integer", "default": 0},
        }
    needs = any(parameter.default is REQUIRED for parameter in kind.parameters)
    return {
        "type": "object",
        "title": kind.name,
        "description": kind.summary,
        "properties": properties,
        "required": ["kind", "params"] if needs else ["kind"],
        "additionalProperties": False,
    }


def _connections() -> Schema:
    scopes: Schema = {}
    for scope in fields(ConnectionMatch):
        single = plain_type(get_args(get_type_hints(ConnectionMatch)[scope.name])[0])
        scopes[camel(scope.name)] = {"anyOf": [single, {"type": "array", "items": single, "minItems": 1}]}
    about = "Which connections it meets; all when it is left out."
    return {"type": "object", "description": about, "properties": scopes, "additionalProperties": False}


def _params(kind: Kind) -> Schema:
    return {
        "type": "object",
        "properties": {camel(each.name): _parameter(each) for each in kind.parameters},
        "required": [camel(each.name) for each in kind.parameters if each.default is REQUIRED],
        "additionalProperties": False,
    }


def _parameter(parameter: Parameter) -> Schema:
    schema: Schema = {"description": parameter.help}
    if parameter.type in _TYPES:
        schema["type"] = _TYPES[parameter.type]
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.default is not REQUIRED:
        schema["default"] = parameter.default
        if parameter.default is None:
            schema.pop("type", None)
    for name in ("minimum", "maximum"):
        if (bound := getattr(parameter, name)) is not None:
            schema[name] = bound
    return schema


class FaultBody(Tabled):
    """A fault."""

    @classmethod
    def made_schema(cls) -> Schema:
        """The schema of a fault."""
        return fault_schema()
