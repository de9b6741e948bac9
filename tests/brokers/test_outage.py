"""Many brokers look for a missing controller, and reconnect together when it is back."""

from __future__ import annotations

import asyncio

import pytest
from mockraft.brokers.shell.outage import Outage
from mockraft.wire.client import DisconnectedError, RequestTimedOutError


async def test_one_broker_probes_during_an_outage_and_all_reconnect_after_it() -> None:
    outage = Outage()
    is_there, tries, at_once, most = False, 0, 0, 0

    async def connect() -> str:
        nonlocal tries, at_once, most
        tries, at_once = tries + 1, at_once + 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        if not is_there:
            raise DisconnectedError("refused") from ConnectionRefusedError()
        return "connected"

    async def insist() -> str:
        while True:
            try:
                return await outage.connect(connect)
            except DisconnectedError:
                continue

    with pytest.raises(DisconnectedError):
        await outage.connect(connect)
    waiting = [asyncio.ensure_future(insist()) for _ in range(200)]
    while tries < 4:
        await asyncio.sleep(0.005)
    assert most == 1
    is_there = True
    before = tries
    assert set(await asyncio.gather(*waiting)) == {"connected"}
    assert tries - before <= 201
    assert await outage.connect(connect) == "connected"


@pytest.mark.parametrize("error", [ValueError("nonsense"), RequestTimedOutError("too late")])
async def test_slow_or_faulty_controller_is_no_outage(error: Exception) -> None:
    outage, under_way = Outage(), asyncio.Event()

    async def fail() -> str:
        raise error

    async def wait() -> str:
        under_way.set()
        await asyncio.Event().wait()
        return "late"

    async def connect() -> str:
        return "connected"

    with pytest.raises(type(error)):
        await outage.connect(fail)
    waiting = asyncio.ensure_future(outage.connect(wait))
    await under_way.wait()
    assert await outage.connect(connect) == "connected", "nobody queues up behind a slow one"
    waiting.cancel()
