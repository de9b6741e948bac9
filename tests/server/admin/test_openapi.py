"""The OpenAPI document is true: generated requests get the documented responses, and never a server error."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from mockraft import Controller
from mockraft.server.admin.app import create_app
from mockraft.server.admin.problems import REFUSALS
from mockraft.server.admin.settings import AdminSettings
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from ...budgets import budget, sample
from ...rows import each_row


def documented_status(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Check that the status is the operation's own, or one of the refusals that its `default` lists."""
    assert str(response.status_code) in {*case.operation.responses.status_codes, *map(str, REFUSALS)}


CHECKS = [not_a_server_error, documented_status, content_type_conformance, response_schema_conformance]
LENIENT = re.compile("/v1/(stubs|faults|plan|requests/(count|find|verify))")
"""These read what Python's from_json reads, which takes null for what is left out; their own tests have refusals."""

ENDLESS = "GET /v1/requests/stream"

DOCUMENT = create_app(Double(dict, Script())).openapi()

schema = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = {found.ok().label: found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)}
LABELS = sorted(OPERATIONS.keys() - {ENDLESS})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The admin API of a controller with a broker."""
    with Controller.sync(brokers=1, admin_port=0) as controller:
        yield controller.admin_url


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, GenerationMode.POSITIVE) for label in LABELS]
    + [(label, GenerationMode.NEGATIVE) for label in sample(LABELS, 10)],
    ids=str,
)
def test_an_operation_answers_as_it_is_described(url: str, label: str, mode: GenerationMode) -> None:
    asked = 0
    checks = CHECKS if LENIENT.search(label) else [*CHECKS, negative_data_rejection]

    @settings(max_examples=budget(1, 100), derandomize=True, database=None, suppress_health_check=list(HealthCheck))
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


def test_operations_have_readable_ids_and_known_tags() -> None:
    operations = [operation for item in DOCUMENT["paths"].values() for operation in item.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert [each for each in ids if not re.fullmatch("[a-z]+([A-Z][a-z]+)*", each)] == []
    assert {tag for operation in operations for tag in operation["tags"]} == {tag["name"] for tag in DOCUMENT["tags"]}


@each_row("token", [None, "secret"])
def test_the_token_is_a_security_scheme_that_health_does_not_need(token: str | None) -> None:
    document = create_app(Double(dict, Script()), AdminSettings(token=token)).openapi()
    assert document["components"]["securitySchemes"]["bearerToken"]["scheme"] == "bearer"
    assert ({} in document["security"]) == (token is None)
    assert [path for path, item in document["paths"].items() if item.get("get", {}).get("security") == []] == [
        "/v1/health"
    ]


def test_the_document_of_the_clients_is_current() -> None:
    kept = Path(__file__).parents[3] / "clients" / "openapi.json"
    assert json.loads(kept.read_text()) == DOCUMENT, "run `make clients`"
