"""`mockraft health`: whether a controller can commit records, for health checks and for scripts that wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import client_security, host_and_port
from mockraft.kafka_api.authentication import HEALTH_CLIENT_ID
from mockraft.kafka_api.options import Option, blaming
from mockraft.wire import error_codes
from mockraft.wire.client import DisconnectedError, UnsupportedVersionError, connect
from mockraft.wire.connection import CONTROLLER_ENDPOINTS
from mockraft.wire.errors import WireError
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.topic_names import CLUSTER_METADATA

if TYPE_CHECKING:
    from mockraft.wire.client import KafkaConnection
    from mockraft.wire.client_security import ClientSecurity

Bootstrap = Annotated[str, Option(variables=("MOCKRAFT_BOOTSTRAP",), help="Controller to ask, as HOST:PORT.")]
TimeoutMs = Annotated[int, Option(lowest=1, help="How long it may take.")]
CommandConfig = Annotated[
    Path | None,
    Option(
        variables=("MOCKRAFT_COMMAND_CONFIG",),
        help="Client properties, as Kafka's tools take them, for a listener with TLS (security.protocol, PEM file in "
        "ssl.truststore.location), or to log in.",
    ),
]


ABOUT = """Ask a controller, mockraft or Kafka's, for its APIs and its leader.

Where a login or an ACL hides the leader, an answer is enough. It is the health check of the container image, so that
a controller that does not answer is a negative result too.

""" + exit_codes(
    done="there is a leader that can commit records",
    failed="there is none, it has failed (a full disk), or nothing answers",
)


class _CannotCommitError(Exception):
    """A controller that answers, but cannot commit records."""


def health(
    bootstrap: Bootstrap = "127.0.0.1:9093", timeout_ms: TimeoutMs = 2_000, command_config: CommandConfig = None
) -> None:
    """Ask a controller; see ABOUT."""
    host, port = host_and_port(bootstrap, "--bootstrap")
    security = client_security(command_config)
    with blaming("--command-config", OSError, ValueError):
        _ = security and security.tls
    try:
        answer = asyncio.run(_health_of(host, port, timeout_ms, security))
    except _CannotCommitError as failure:
        print(f"{bootstrap} cannot commit: {failure}")
        raise SystemExit(ExitCode.FAILED) from None
    except (OSError, TimeoutError, WireError) as error:
        is_open = isinstance(error, WireError) or "connection lost" in str(error)
        hint = "; does it listen with TLS? Then give --command-config" if is_open and security is None else ""
        print(f"{bootstrap} does not answer: {str(error) or type(error).__name__}{hint}")
        raise SystemExit(ExitCode.FAILED) from None
    print(f"{bootstrap} answers{answer}")


async def _health_of(host: str, port: int, timeout_ms: int, security: ClientSecurity | None) -> str:
    """Return the rest of a healthy controller's line. Raises _CannotCommitError."""
    async with asyncio.timeout(timeout_ms / 1000):
        connection = await connect(host, port, client_id=HEALTH_CLIENT_ID, security=security)
        try:
            return await _leader_of(connection)
        except DisconnectedError:
            if security is not None and security.login is not None:
                raise
            return "; its leader is not visible before login"
        finally:
            await connection.close()


async def _leader_of(connection: KafkaConnection) -> str:
    """Return the rest of the line: the leader, or the reason why it is not visible. Raises _CannotCommitError."""
    topic = TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=0)])
    try:
        quorum = await connection.send(DescribeQuorumRequest(topics=[topic]))
        if quorum.error_code == error_codes.KAFKA_STORAGE_ERROR:
            raise _CannotCommitError(quorum.error_message or error_codes.name(quorum.error_code))
        cluster = await connection.send(DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINTS))
    except UnsupportedVersionError as error:
        return f"; its leader is not visible: {error}"
    if cluster.error_code == error_codes.NONE and cluster.controller_id < 0:
        raise _CannotCommitError("no controller is active")
    partition = next((each for found in quorum.topics for each in found.partitions if not each.error_code), None)
    if partition is not None:
        return f": leader {partition.leader_id} in epoch {partition.leader_epoch}"
    if cluster.error_code != error_codes.NONE:
        return f"; its leader is not visible: {error_codes.name(cluster.error_code)}"
    return f": leader {cluster.controller_id}"


COMMANDS = {"health": Command("health", health, ABOUT)}
