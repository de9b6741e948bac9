"""Many who look for a controller that is gone, and find it together when it is back."""

from __future__ import annotations

import asyncio

import pytest
from mockraft.brokers.outage import Outage
from mockraft.wire.client import DisconnectedError


async def test_while_it_is_gone_one_tries_and_all_come_in_when_it_is_back() -> None:
    outage = Outage()
    is_there, tries, at_once, most = False, 0, 0, 0

    async def connect() -> str:
        nonlocal tries, at_once, most
        tries, at_once = tries + 1, at_once + 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        if not is_there:
            raise DisconnectedError("refused")
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


async def test_other_errors_are_no_outage() -> None:
    outage = Outage()

    async def fail() -> str:
        raise ValueError("nonsense")

    async def connect() -> str:
        return "connected"

    with pytest.raises(ValueError, match="nonsense"):
        await outage.connect(fail)
    assert await outage.connect(connect) == "connected"
