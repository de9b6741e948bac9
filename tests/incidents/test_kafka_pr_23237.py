"""kafka#23237: a controller offers two APIs that it does not handle."""

import asyncio
from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.wire import api_keys, client, error_codes
from mockraft.wire.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest


async def describe_users(bootstrap: str) -> int:
    """Send what ApiVersions has just offered, and return the code of the response."""
    host, port = bootstrap.split(":")
    connection = await client.connect(host, int(port), client_id="admin")
    try:
        assert api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS in connection.api_versions
        return (await connection.send(DescribeUserScramCredentialsRequest())).error_code
    finally:
        await connection.close()


def test_users_cannot_be_described_at_the_controller(tmp_path: Path) -> None:
    with Controller.sync() as controller:
        assert asyncio.run(describe_users(controller.bootstrap)) == error_codes.UNKNOWN_SERVER_ERROR

    with KafkaController(tmp_path / "kafka", random_uuid()) as kafka:
        kafka.wait_until_running()
        assert asyncio.run(describe_users(kafka.bootstrap)) == error_codes.UNKNOWN_SERVER_ERROR
        kafka.wait_for_log(r"ERROR kafka.server.ControllerApis .* Unexpected error handling request")
        kafka.wait_for_log("ApiException: Unsupported ApiKey DESCRIBE_USER_SCRAM_CREDENTIALS")
