from typing import Any

from mockraft.server.journal import Exchange
from mockraft.wire.connection import write_request, write_response
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse


def heartbeat(broker_id: int = 1, failure: str | None = None, error_code: int = 0, **more: Any) -> Exchange:
    request = write_request(BrokerHeartbeatRequest(broker_id=broker_id), 2, 7, "1")[4:]
    answer = BrokerHeartbeatResponse(error_code=error_code, is_caught_up=True)
    frame = b"" if more.get("reason") else write_response(answer.write(2), 7, 1)
    return Exchange(
        5, 1000, 1002, (63, 2, 7, "1"), request, frame, 2, "controller", failure, broker_id=broker_id, **more
    )
