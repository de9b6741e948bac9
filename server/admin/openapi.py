"""The OpenAPI document: FastAPI's, as version 3.0.3, which generators of clients for every language read.

FastAPI writes version 3.1, whose lists of types most generators do not understand. Names of components and operations
are those of the generated clients' types and methods: do not change them without need.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from mockraft.server.admin import fault_schema, stub_schema
from mockraft.server.admin.guard import OPEN_PATHS
from mockraft.server.admin.problems import MEDIA_TYPE, REFUSALS, Problem
from mockraft.server.admin.stub_schema import Schema, reference
from mockraft.wire.names import camel

ABOUT = """Control and inspect a running mockraft controller, or quorum, from any language.

Names are Kafka's, in camelCase; stubs, faults and matches have the JSON of stub files. Errors are problems (RFC 9457)
whose `errors` name the fields. `GET`s have an ETag.
"""

TAGS = {
    "system": "Health, settings, the clock, reset and restart.",
    "stubs": "Requests whose answers are replaced, changed, delayed or dropped.",
    "scenarios": "Named states that stubs require and set.",
    "faults": "Network faults, presets of the controller's misbehaviour, and timed plans of both.",
    "requests": "The journal of received requests: list, export, count, verify.",
    "state": "The controller's state, and commands that change it as a broker or an operator would.",
    "recordings": "Answers of another controller, or of this one, as stubs.",
}

LICENSE = {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}

INT32 = {
    *("apiVersion", "brokerId", "brokers", "connection", "correlationId", "fenced", "isr", "leader"),
    *("leaderEpoch", "leaderId", "maxVersion", "metadataVersion", "minVersion", "node", "nodeId", "nodes"),
    *("partition", "partitionEpoch", "port", "replicas", "status", "total", "version", "voters"),
}
"""Names of integers that Kafka has in 32 bits; the others may need 64."""

_VALUES = ("default", "example")
_DROPPED = ("title", "examples", "const", "contentMediaType")


def operation_id(route: APIRoute) -> str:
    """Return the id of a route's operation: the name of its function, in camelCase."""
    return camel(route.name)


def openapi_document(app: FastAPI, *, needs_token: bool) -> Schema:
    """Return the document of an app as version 3.0.3."""
    made = get_openapi(title="mockraft", version=app.version, description=ABOUT, routes=app.routes)
    schemas = {**made["components"]["schemas"], **_parts()}
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's errors, which are answered as problems
        schemas.pop(unused, None)
    document = {
        "servers": [{"url": "/", "description": "The controller that serves this document."}],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
        "security": [{"bearerToken": []}] if needs_token else [{}, {"bearerToken": []}],
        "paths": {path: _operations(path, item) for path, item in made["paths"].items()},
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": {"Problem": _problem()},
            "securitySchemes": {
                "bearerToken": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of `--admin-token-file`; without that option none is needed.",
                }
            },
        },
    }
    converted: Schema = _converted(document)
    return {"openapi": "3.0.3", "info": {**made["info"], "license": LICENSE}, **converted}


def _parts() -> dict[str, Schema]:
    problem = Problem.model_json_schema(ref_template=reference("{model}")["$ref"])
    return {**problem.pop("$defs"), "Problem": problem, **stub_schema.parts(), **fault_schema.parts()}


def _operations(path: str, item: Mapping[str, Schema]) -> Schema:
    operations = {}
    for method, operation in item.items():
        answers = {status: each for status, each in operation["responses"].items() if status.startswith("2")}
        answers["default"] = {"$ref": "#/components/responses/Problem"}
        operations[method] = operation | {"responses": answers}
        if path in OPEN_PATHS:
            operations[method]["security"] = []
    return operations


def _problem() -> Schema:
    statuses = "\n".join(f"- {status}: {about}" for status, about in REFUSALS.items())
    return {"description": f"Refused:\n{statuses}", "content": {MEDIA_TYPE: {"schema": reference("Problem")}}}


def _converted(tree: Any, name: str = "") -> Any:
    """Return a part of the document in the words of version 3.0; `name` is that of the property it describes."""
    if isinstance(tree, list):
        return [_converted(each, name) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if "properties" in tree:
        properties = {key: _optional(_converted(value, key)) for key, value in tree["properties"].items()}
        return _converted({key: tree[key] for key in tree if key != "properties"}) | {"properties": properties}
    converted = {
        key: value if key in _VALUES else _converted(value, _inside(tree, key, name))
        for key, value in tree.items()
        if key not in _DROPPED
    }
    if isinstance(examples := tree.get("examples"), list):
        converted["example"] = examples[0]
    if "const" in tree:
        converted["enum"] = [tree["const"]]
    if tree.get("type") == "integer":
        converted.setdefault("format", "int32" if name in INT32 else "int64")
        bits = int(converted["format"].removeprefix("int")) - 1
        for bound in {"minimum", "maximum"} & tree.keys():
            converted[bound] = int(tree[bound])
            if float(tree[bound]) in (-(2.0**bits), float(2**bits - 1)):  # the format says it; some bounds are floats
                del converted[bound]
    if tree.get("type") == "number":
        converted["format"] = "double"
    if "default" in tree and tree["default"] is None:
        del converted["default"]
    choices = tree.get("anyOf")
    return _nullable(converted) if isinstance(choices, list) and {"type": "null"} in choices else converted


def _inside(tree: Schema, key: str, name: str) -> str:
    """Return the name of what a key's value describes: list elements and alternatives have that of the whole."""
    if key == "schema" and "in" in tree:
        return str(tree["name"])
    return name if key in ("items", "anyOf") else ""


def _optional(schema: Schema) -> Schema:
    """Return a property's schema with its default as text: openapi-typescript demands a property that has one."""
    if "default" not in schema:
        return schema
    default = json.dumps(schema.pop("default"))
    return schema | {"description": " ".join(filter(None, (schema.get("description"), f"Default: {default}.")))}


def _nullable(schema: Schema) -> Schema:
    """Return the schema of one type or null, which version 3.1 writes as two alternatives."""
    (other,) = [each for each in schema.pop("anyOf") if each != {"type": "null"}]
    return {**({"type": "object", "allOf": [other]} if "$ref" in other else other), **schema, "nullable": True}
