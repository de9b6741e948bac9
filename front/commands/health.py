"""`mockraft health`: whether a controller answers, for health checks and for scripts that wait."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

Bootstrap = Annotated[str, typer.Option(envvar="MOCKRAFT_BOOTSTRAP", help="Controller to ask, as HOST:PORT.")]
TimeoutMs = Annotated[int, typer.Option(min=1, help="How long it may take.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("health", short_help="Check that a controller answers.")(health)


def health(bootstrap: Bootstrap = "127.0.0.1:9093", timeout_ms: TimeoutMs = 2_000) -> None:
    """Ask a controller, mockraft or Kafka's, which APIs it has; exit code 0 when it answers, 1 when it does not.

    It is the health check of the container image.
    """
    host, colon, port = bootstrap.rpartition(":")
    if not colon or not port.isdigit():
        raise typer.BadParameter(f"{bootstrap} is not HOST:PORT", param_hint="--bootstrap")
    try:
        apis = asyncio.run(_apis_of(host.strip("[]"), int(port), timeout_ms))
    except (OSError, TimeoutError) as error:
        print(f"{bootstrap} does not answer: {str(error) or type(error).__name__}")
        raise typer.Exit(1) from None
    print(f"{bootstrap} answers: {apis} APIs")


async def _apis_of(host: str, port: int, timeout_ms: int) -> int:
    from mockraft.wire.client import connect

    async with asyncio.timeout(timeout_ms / 1000):
        connection = await connect(host, port, client_id="mockraft-health")
        await connection.close()
        return len(connection.api_versions)
