"""To ask a controller by API, as the node does."""

from collections.abc import Callable
from typing import Any

import pytest

SendToNode = Callable[..., Any]


@pytest.fixture
def ask() -> SendToNode:
    """`ask(cluster, request, version=None, forwarded=False)`: the response, read back from its bytes."""

    def send(cluster: Any, request: Any, version: int | None = None, forwarded: bool = False) -> Any:
        return cluster.ask(request, version, forwarded=forwarded)

    return send
