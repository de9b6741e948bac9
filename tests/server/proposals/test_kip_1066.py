"""A broker built to KIP-1066's text finds a controller that speaks it."""

from typing import Any

from mockraft import Controller
from mockraft.wire import error_codes
from mockraft.wire.client import connect

A, B = (bytes([8] * 15 + [number]) for number in (1, 2))


async def test_registration_carries_cordoned_directories_over_a_socket(registration: Any) -> None:
    async with Controller(profile="kip-1066") as controller:
        connection = await connect(controller.host, controller.port, messages=controller.messages)
        try:
            assert connection.api_versions[62] == (0, 4)
            request = registration(controller, 1, log_dirs=[A, B], cordoned_log_dirs=[A])
            response = await connection.send(request, version=4)
            assert response.error_code == error_codes.NONE
            assert controller.running.controller.image.cluster.brokers[1].cordoned_log_dirs == (A,)
            assert controller.journal.exchanges(62)[0].request == request
        finally:
            await connection.close()
