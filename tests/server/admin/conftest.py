"""A controller of this test's own, and its admin API without sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import jsonschema_rs
import pytest
from mockraft import Controller
from mockraft.server.admin.app import create_app
from mockraft.server.admin.settings import AdminSettings
from mockraft.server.double import Double
from mockraft.server.stubs.script import Script
from mockraft.wire import client
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest

Asking = Callable[..., httpx.AsyncClient]


def _asking(double: Any, base_url: str = "http://127.0.0.1:8080", **settings: Any) -> httpx.AsyncClient:
    app = create_app(double, AdminSettings(**settings))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app, raise_app_exceptions=False), base_url=base_url)


@pytest.fixture(scope="session")
def schema() -> Callable[[str], jsonschema_rs.Draft4Validator]:
    """Return a validator of a component of the OpenAPI document."""
    document = create_app(Double(dict, Script())).openapi()

    def validator(name: str) -> jsonschema_rs.Draft4Validator:
        return jsonschema_rs.Draft4Validator({**document, "$ref": f"#/components/schemas/{name}"})

    return validator


@pytest.fixture
def asking() -> Asking:
    """Gives a client of the admin API of a double, with other settings."""
    return _asking


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    """A controller that runs as long as the test."""
    async with Controller(assert_all_used=False) as running:
        yield running


@pytest.fixture
async def http(controller: Controller) -> AsyncIterator[httpx.AsyncClient]:
    """A client of its admin API."""
    async with _asking(controller) as asked:
        yield asked


@pytest.fixture
def ask(controller: Controller) -> Callable[..., Awaitable[None]]:
    """Has a client ask the controller for ApiVersions and DescribeCluster, over the wire."""

    async def ask_both(client_id: str = "test") -> None:
        connection = await client.connect(controller.host, controller.port, client_id=client_id)
        await connection.send(DescribeClusterRequest(endpoint_type=2))
        await connection.close()

    return ask_both
