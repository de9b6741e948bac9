"""UnregisterController: the registration of a controller is removed, from metadata.version 4.4-IV2 on."""

from typing import Any

import pytest
from mockraft import Controller, Quorum
from mockraft.wire import error_codes
from mockraft.wire.client import UnsupportedVersionError
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from mockraft.wire.messages.unregister_controller_request import UnregisterControllerRequest

from ...topics import ask
from ...waiting import until

NODE_ID = 3000
NEVER_REGISTERED = 9
REGISTERED = 3001


async def unregister(bootstrap: str, controller_id: int) -> tuple[int, str | None]:
    response = await ask(bootstrap, UnregisterControllerRequest(controller_id=controller_id))
    return response.error_code, response.error_message


async def test_controller_is_unregistered_once() -> None:
    async with Controller(release="4.4") as controller:
        listener = Listener(name="CONTROLLER", host="localhost", port=9093)
        await ask(
            controller.bootstrap,
            ControllerRegistrationRequest(controller_id=REGISTERED, incarnation_id=bytes(16), listeners=[listener]),
        )
        cluster = controller.running.controller.image.cluster
        assert REGISTERED in cluster.controllers
        assert await unregister(controller.bootstrap, REGISTERED) == (error_codes.NONE, "")
        assert REGISTERED not in cluster.controllers
        gone = f"Controller ID {REGISTERED} is not currently registered."
        assert await unregister(controller.bootstrap, REGISTERED) == (error_codes.CONTROLLER_ID_NOT_REGISTERED, gone)


@pytest.mark.parametrize(
    ("options", "controller_id", "expected"),
    [
        ({}, NODE_ID, (error_codes.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")),
        (
            {},
            NEVER_REGISTERED,
            (error_codes.CONTROLLER_ID_NOT_REGISTERED, "Controller ID 9 is not currently registered."),
        ),
        (
            {"metadata_version": 32},
            NEVER_REGISTERED,
            (
                error_codes.UNSUPPORTED_VERSION,
                "The current MetadataVersion is too old to support controller unregistration.",
            ),
        ),
        (
            {"metadata_version": 32},
            NODE_ID,
            (error_codes.INVALID_REQUEST, "Controller cannot unregister itself while it is active."),
        ),
    ],
)
async def test_refusals_are_those_of_a_real_controller(
    options: dict[str, Any], controller_id: int, expected: tuple[int, str]
) -> None:
    async with Controller(release="4.4", **options) as controller:
        assert await unregister(controller.bootstrap, controller_id) == expected


async def test_controllers_before_4_4_do_not_have_it() -> None:
    async with Controller(release="4.3") as controller:
        with pytest.raises(UnsupportedVersionError):
            await unregister(controller.bootstrap, NODE_ID)


@pytest.mark.parametrize(
    ("release", "code", "message"),
    [
        ("4.4", error_codes.NONE, ""),
        ("4.5", error_codes.INVALID_REQUEST, "Cannot unregister controller {} because it is part of the voter set."),
    ],
)
async def test_voters_stay_registered_since_4_5(release: str, code: int, message: str) -> None:
    async with Quorum(2, release=release) as quorum:
        leader = await quorum.wait_for_leader()
        other = next(each for each in quorum.node_ids if each != leader)
        await until(lambda: other in quorum.node(leader).controller.image.cluster.controllers)
        address = quorum.bootstrap.split(",")[quorum.node_ids.index(leader)]
        assert await unregister(address, other) == (code, message.format(other))
