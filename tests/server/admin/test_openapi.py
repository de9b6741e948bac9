"""The OpenAPI document is true: generated requests get the documented responses, and never a server error."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from mockraft import Controller
from mockraft.server.admin.app import create_app
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LENIENT = re.compile("/v1/(stubs|faults|plan|requests/(count|find|verify))")
"""These read what Python's from_json reads, which takes null for what is left out; their own tests have refusals."""

ENDLESS = "GET /v1/requests/stream"

schema = schemathesis.openapi.from_dict(create_app(Double(dict, Script())).openapi())
OPERATIONS = {found.ok().label: found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The admin API of a controller with a broker."""
    with Controller.sync(brokers=1, admin_port=0) as controller:
        yield controller.admin_url


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", sorted(OPERATIONS.keys() - {ENDLESS}))
def test_an_operation_answers_as_it_is_described(url: str, label: str, mode: GenerationMode) -> None:
    asked = 0
    checks = CHECKS if LENIENT.search(label) else [*CHECKS, negative_data_rejection]

    @settings(max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[label].as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal asked
        asked += 1
        if isinstance(case.body, dict) and type(case.body.get("withinMs")) is int and case.body["withinMs"] > 0:
            case.body["withinMs"] = 1
        case.call_and_validate(base_url=url, checks=checks, timeout=60)

    # An operation without parameters cannot be asked wrongly.
    with contextlib.suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else contextlib.nullcontext():
        ask()
    assert asked > 0 or mode is GenerationMode.NEGATIVE
