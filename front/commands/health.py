"""`mockraft health`: whether a controller can commit records, for health checks and for scripts that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from mockraft.commands.exit_codes import ExitCode, exit_codes

if TYPE_CHECKING:
    from mockraft.wire.client import KafkaConnection

_CONTROLLERS = 2
"""The endpoint type of controllers in DescribeCluster."""

Bootstrap = Annotated[str, typer.Option(envvar="MOCKRAFT_BOOTSTRAP", help="Controller to ask, as HOST:PORT.")]
TimeoutMs = Annotated[int, typer.Option(min=1, help="How long it may take.")]


ABOUT = """Ask a controller, mockraft or Kafka's, for its APIs and its leader.

Where a login or an ACL hides the leader, an answer is enough. It is the health check of the container image, so that
a controller that does not answer is a negative result too.

""" + exit_codes(
    done="there is a leader that can commit records",
    failed="there is none, it has failed (a full disk), or nothing answers",
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("health", help=ABOUT)(health)


def health(bootstrap: Bootstrap = "127.0.0.1:9093", timeout_ms: TimeoutMs = 2_000) -> None:
    """Ask a controller; see ABOUT."""
    host, colon, port = bootstrap.rpartition(":")
    if not colon or not port.isdigit():
        raise typer.BadParameter(f"{bootstrap} is not HOST:PORT", param_hint="--bootstrap")
    try:
        apis, failure = asyncio.run(_health_of(host.strip("[]"), int(port), timeout_ms))
    except (OSError, TimeoutError) as error:
        print(f"{bootstrap} does not answer: {str(error) or type(error).__name__}")
        raise typer.Exit(ExitCode.FAILED) from None
    if failure is not None:
        print(f"{bootstrap} cannot commit: {failure}")
        raise typer.Exit(ExitCode.FAILED)
    print(f"{bootstrap} answers: {apis} APIs")


async def _health_of(host: str, port: int, timeout_ms: int) -> tuple[int, str | None]:
    """Return the number of APIs, and the reason why the controller cannot commit, None if it can."""
    from mockraft.wire.client import connect

    async with asyncio.timeout(timeout_ms / 1000):
        connection = await connect(host, port, client_id="mockraft-health")
        try:
            return len(connection.api_versions), await _failure_of(connection)
        finally:
            await connection.close()


async def _failure_of(connection: KafkaConnection) -> str | None:
    from mockraft.wire import error_codes
    from mockraft.wire.client import DisconnectedError, UnsupportedVersionError
    from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
    from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData

    topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
    try:
        quorum = await connection.send(DescribeQuorumRequest(topics=[topic]))
        if quorum.error_code == error_codes.KAFKA_STORAGE_ERROR:
            return quorum.error_message or error_codes.name(quorum.error_code)
        cluster = await connection.send(DescribeClusterRequest(endpoint_type=_CONTROLLERS))
    except (DisconnectedError, UnsupportedVersionError):
        # It wants a login, or is too old for these.
        return None
    has_leader = cluster.controller_id >= 0 or cluster.error_code != error_codes.NONE
    return None if has_leader else "no controller is active"
