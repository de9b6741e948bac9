"""Modules generated at run time from invented schemas."""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from mockraft.codegen.check import check
from mockraft.codegen.emit_module import emit_module
from mockraft.codegen.parse import parse

_numbers = itertools.count()

MessageOf = Callable[..., Any]
ID = {"name": "Id", "type": "int32", "versions": "0+"}
NAME = {"name": "Name", "type": "string", "versions": "0+"}


@pytest.fixture
def message_of() -> Iterator[MessageOf]:
    """`message_of(fields, **top_level_keys)` generates the class of such a schema, called `TestRequest`."""
    modules: list[str] = []

    def make(*fields: dict[str, Any], **keys: Any) -> Any:
        tree = {
            "type": "request",
            "name": "TestRequest",
            "validVersions": "0",
            "flexibleVersions": "none",
            "fields": [{"versions": "0+"} | field for field in fields],
        }
        spec = parse(json.dumps(tree | keys), "TestRequest.json")
        check(spec)
        module = ModuleType(f"generated_for_a_test_{next(_numbers)}")
        sys.modules[module.__name__] = module
        modules.append(module.__name__)
        exec(compile(emit_module(spec), module.__name__, "exec"), module.__dict__)
        return module.__dict__["TestRequest"]

    yield make
    for name in modules:
        del sys.modules[name]
