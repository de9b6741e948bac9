"""Delegation tokens at a controller."""

from __future__ import annotations

from mockraft.conformance.case import Rank, case
from mockraft.conformance.world import World
from mockraft.wire import error_codes as codes

AREA = "tokens"
SOURCE = "ControllerApis.allowTokenRequests"
REFUSED = {"errorCode": codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}


@case("a token is not given to who asks on a PLAINTEXT listener", AREA, SOURCE)
async def _(world: World) -> None:
    for version in (1, 2, 3):
        await world.ask("CreateDelegationToken", {"maxLifetimeMs": -1}, answer=REFUSED, version=version)
    await world.wrote()


@case("a token is not renewed for who asks on a PLAINTEXT listener", AREA, SOURCE)
async def _(world: World) -> None:
    await world.ask("RenewDelegationToken", {"hmac": "AAAA", "renewPeriodMs": 1}, answer=REFUSED)


@case("a token is not ended for who asks on a PLAINTEXT listener", AREA, SOURCE)
async def _(world: World) -> None:
    await world.ask("ExpireDelegationToken", {"hmac": "AAAA", "expiryTimePeriodMs": 1}, answer=REFUSED)


@case("the description of tokens has no handler on a controller", AREA, "ControllerApis", Rank.QUIRK)
async def _(world: World) -> None:
    await world.ask("DescribeDelegationToken", {"owners": []}, answer={"errorCode": codes.UNKNOWN_SERVER_ERROR})
