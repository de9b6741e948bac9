"""To ask a controller by API, as the node does."""

from collections.abc import Callable
from typing import Any

import pytest
from mockraft.server.apis.api import RequestContext, answer
from mockraft.server.apis.registry import APIS

Ask = Callable[..., Any]


@pytest.fixture
def ask() -> Ask:
    """`ask(cluster, request, version=None, forwarded=False)`: the response, read back from its bytes.

    The version is the newest unless it is given.
    """

    def send(cluster: Any, request: Any, version: int | None = None, forwarded: bool = False) -> Any:
        api = APIS[request.api_key]
        version = api.max_version if version is None else version
        ctx = RequestContext(
            api_key=api.api_key,
            api_version=version,
            correlation_id=1,
            client_id="test",
            connection_id=1,
            listener="CONTROLLER",
            principal="User:ANONYMOUS",
            client_address="127.0.0.1",
            forwarded=forwarded,
            now_ms=cluster.now_ms,
            apis=APIS,
        )
        cluster.mark()
        response = answer(api, api.request.read(request.write(version), version), ctx, cluster.controller)
        assert ctx.failure is None, ctx.failure
        return api.response.read(response.write(version), version)

    return send
