"""The JSON schema of stubs, made of the same tables that read them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from mockraft.server.stubs.actions import Action, known_actions
from mockraft.server.stubs.errors import camel
from mockraft.server.stubs.match import SCOPES
from mockraft.server.stubs.predicates import OPERATORS
from mockraft.server.stubs.scenarios import Scenario
from mockraft.server.stubs.triggers import TRIGGERS
from pydantic import GetJsonSchemaHandler, RootModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

Schema = dict[str, Any]

_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
_INTEGER_SCOPES = ("version", "brokerId", "connection", "node")


def match_schema() -> Schema:
    """The schema of a match: whom and what a stub, a count or a verification is about."""
    conditions = {"type": "object", "description": "Fields of the request by path.", "additionalProperties": _value({})}
    properties = {name: _scope(name) | {"description": about} for name, about in SCOPES.items()}
    return {
        "type": "object",
        "description": "What a request must be like; what is left out may be anything.",
        "properties": {**properties, "where": conditions},
        "additionalProperties": False,
        "examples": [{"api": "BrokerHeartbeat", "brokerId": 1, "where": {"currentMetadataOffset": {"gte": 5}}}],
    }


def stub_schema() -> Schema:
    """The schema of a stub."""
    action = {"anyOf": [_action(kind) for kind in known_actions().values()] + [_bare_actions()]}
    return {
        "type": "object",
        "description": "Which requests, when, and what is done instead.",
        "properties": {
            "id": {"type": "string", "description": "Made when it is left out."},
            "name": {"type": "string"},
            "priority": {"type": "integer", "default": 0, "description": "Higher first; among equals the newest."},
            "enabled": {"type": "boolean", "default": True},
            "match": match_schema(),
            "trigger": _trigger(),
            "scenario": _parameters(Scenario) | {"description": "The state that it waits for, and the one it sets."},
            "actions": {"anyOf": [{"type": "array", "items": action}, action]},
            "calls": {"type": "integer", "readOnly": True, "description": "How often it served."},
            "matched": {"type": "integer", "readOnly": True, "description": "How often it matched."},
            "lastServedMs": {"type": "integer", "readOnly": True},
        },
        "additionalProperties": False,
        "examples": [
            {
                "name": "one heartbeat meets a standby",
                "match": {"api": "BrokerHeartbeat", "brokerId": 1},
                "trigger": {"once": True},
                "actions": [{"injectError": "NOT_CONTROLLER"}],
            }
        ],
    }


def _value(single: Schema) -> Schema:
    """One value, a list (one of them), or operators."""
    operators = {name: {"description": operator.summary} for name, operator in OPERATORS.items()}
    either = {"type": "object", "properties": operators, "additionalProperties": False, "title": "operators"}
    if not single:
        return {"anyOf": [{"type": ["string", "number", "boolean", "null", "array"]}, either]}
    return {"anyOf": [single, {"type": "array", "items": single}, either]}


def _scope(name: str) -> Schema:
    if name == "api":
        single = {"type": ["string", "integer"]}
        return {"anyOf": [single, {"type": "array", "items": single}, {"type": "null"}]}
    schema = _value({"type": ["integer" if name in _INTEGER_SCOPES else "string", "null"]})
    if name == "version":
        bounds = {bound: {"type": ["integer", "null"]} for bound in ("min", "max")}
        schema["anyOf"].append(
            {"type": "object", "properties": bounds, "additionalProperties": False, "title": "range"}
        )
    return schema


def _trigger() -> Schema:
    forms: list[Schema] = []
    for name, kind in TRIGGERS.items():
        value: Schema = {"const": True}
        if kind.parameter is not None:
            value = plain_type(
                next(hint for field, hint in get_type_hints(kind).items() if camel(field) == kind.parameter)
            )
            value |= {"minimum": 0, "maximum": 1} if value["type"] == "number" else {"minimum": 1}
        seed = {"seed": {"type": "integer"}} if any(field.name == "seed" for field in fields(kind)) else {}
        forms.append(
            {
                "type": "object",
                "description": kind.summary,
                "properties": {name: value, **seed},
                "required": [name],
                "additionalProperties": False,
            }
        )
    bare = [name for name, kind in TRIGGERS.items() if kind.parameter is None]
    return {"anyOf": [*forms, {"type": "string", "enum": bare}], "description": "When it serves what it matches."}


def _action(kind: type[Action]) -> Schema:
    parameters = _parameters(kind)
    forms: list[Schema] = [] if kind.takes_whole else [parameters]
    if not kind.takes_whole and not parameters["required"]:
        forms.append({"const": True})
    beside = dict(parameters["properties"])
    if kind.main is not None:
        forms.append(beside.pop(camel(kind.main)))
    return {
        "type": "object",
        "title": kind.name,
        "description": kind.summary,
        "properties": {kind.name: forms[0] if len(forms) == 1 else {"anyOf": forms}, **beside},
        "required": [kind.name],
        "additionalProperties": False,
        "examples": [{kind.name: kind.example}],
    }


def _bare_actions() -> Schema:
    bare = [name for name, kind in known_actions().items() if not _parameters(kind)["required"] and name != "change"]
    return {"type": "string", "enum": bare, "title": "an action that needs no parameter"}


def _parameters(kind: type) -> Schema:
    hints = get_type_hints(kind)
    own = [field for field in fields(kind) if field.init]
    return {
        "type": "object",
        "properties": {camel(field.name): plain_type(hints[field.name]) for field in own},
        "required": [
            camel(field.name) for field in own if field.default is MISSING and field.default_factory is MISSING
        ],
        "additionalProperties": False,
    }


def plain_type(hint: Any) -> Schema:
    """The schema of a plain type or a union of some; of others, that of anything."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if isinstance(hint, UnionType) and all(each in _PLAIN for each in get_args(hint)):
        return {"type": [_PLAIN[each] for each in get_args(hint)]}
    return {}


class Tabled(RootModel[dict[str, Any]]):
    """An object that the double reads, and whose schema comes from the double's tables."""

    @classmethod
    def made_schema(cls) -> Schema:
        """The schema."""
        raise AssertionError(f"{cls.__name__} has no tables")

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Put the tables' schema in the place of the one of any object."""
        named = handler(core_schema)
        schema = handler.resolve_ref_schema(named)
        schema.clear()
        schema.update(cls.made_schema())
        return named


class MatchBody(Tabled):
    """A match."""

    @classmethod
    def made_schema(cls) -> Schema:
        """The schema of a match."""
        return match_schema()


class StubBody(Tabled):
    """A stub."""

    @classmethod
    def made_schema(cls) -> Schema:
        """The schema of a stub."""
        return stub_schema()
