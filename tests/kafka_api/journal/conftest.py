import itertools
from typing import Any

import pytest
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import Answer, Exchange, Journal
from mockraft.wire.connection import parse_request, write_request, write_response
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse


def heartbeat(
    broker_id: int = 1,
    failure: str | None = None,
    error_code: int = 0,
    at_ms: int = 1000,
    want_fence: bool = False,
    offset: int = 0,
    peer_address: str = "",
    **more: Any,
) -> Exchange:
    asked = BrokerHeartbeatRequest(broker_id=broker_id, want_fence=want_fence, current_metadata_offset=offset)
    answer = BrokerHeartbeatResponse(error_code=error_code, is_caught_up=True)
    frame = b"" if more.get("reason") else write_response(answer.write(2), 7, 1)
    served_by = "controller" if "matched" not in more else f"stub {more['matched']}"
    return Exchange(
        Client(5, peer_address, "CONTROLLER", broker_id=broker_id),
        parse_request(write_request(asked, 2, 7, "1")[4:]),
        Answer(frame, 2, served_by, failure, **more),
        at_ms,
        at_ms + 2,
    )


@pytest.fixture
def journals() -> list[Journal]:
    """Those of nodes 3000 and 3001, which share the numbers of their entries."""
    numbers = itertools.count(1)
    return [Journal(100, 1 << 20, node_id=node_id, numbers=numbers) for node_id in (3000, 3001)]
