"""Dependencies of operations: the double, and one of its nodes."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, Query, Request
from mockraft.server.admin.problems import ProblemError
from mockraft.server.double import Double


async def _double(request: Request) -> Double:
    double: Double = request.app.state.double
    return double


async def _stopping(request: Request) -> asyncio.Event:
    stopping: asyncio.Event = request.app.state.stopping
    return stopping


async def _streams(request: Request) -> set[asyncio.Task[object]]:
    streams: set[asyncio.Task[object]] = request.app.state.streams
    return streams


TheDouble = Annotated[Double, Depends(_double)]
Stopping = Annotated[asyncio.Event, Depends(_stopping)]
Streams = Annotated[set[asyncio.Task[object]], Depends(_streams)]


async def _node(
    double: TheDouble,
    node: Annotated[int | None, Query(description="A node of the quorum; default: all nodes.", ge=0)] = None,
) -> int | None:
    if node is not None and node not in double.journals:
        about = f"there is no node {node}; there are {', '.join(map(str, double.journals))}"
        raise ProblemError(404, about, parameter="node")
    return node


OneNode = Annotated[int | None, Depends(_node)]
