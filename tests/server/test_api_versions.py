from typing import Any

import pytest
from mockraft import Controller
from mockraft.server.apis.registry import APIS
from mockraft.wire import error_codes
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.api_versions_response import ApiVersion

REAL_CONTROLLER = {
    1: (4, 18), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4),
    33: (0, 2), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 43: (0, 2), 44: (0, 1),
    45: (0, 1), 46: (0, 0), 49: (0, 1), 50: (0, 0), 51: (0, 0), 52: (0, 2), 53: (0, 1), 54: (0, 1), 55: (0, 2),
    56: (2, 3), 57: (0, 2), 58: (0, 0), 59: (0, 1), 60: (0, 2), 62: (0, 4), 63: (0, 2), 64: (0, 0), 67: (0, 0),
    70: (0, 0), 73: (0, 0), 80: (0, 1), 81: (0, 0), 82: (0, 0),
}  # fmt: skip
"""The versions that a 4.3.1 controller advertises, from a capture."""

FINALIZED = {
    "metadata.version": 30,
    "kraft.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
    "eligible.leader.replicas.version": 1,
}

SUPPORTED = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
}


def java_client(name: str = "apache-kafka-java", version: str = "4.3.1") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.fixture
def rig(make_rig: Any, controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=controller)


def test_every_api_has_the_versions_of_a_real_controller() -> None:
    assert {key: (api.min_version, api.max_version) for key, api in APIS.items()} == {
        key: REAL_CONTROLLER[key] for key in APIS
    }


@pytest.mark.parametrize("version", range(5))
def test_offers_exactly_the_handled_apis(rig: Any, version: int) -> None:
    response = rig.ask(rig.connect(), java_client(), version)
    assert response.error_code == error_codes.NONE
    assert response.api_keys == [
        ApiVersion(api_key=key, min_version=api.min_version, max_version=api.max_version) for key, api in APIS.items()
    ]


def test_features_equal_those_of_a_real_controller(rig: Any) -> None:
    response = rig.ask(rig.connect(), java_client(), 4)
    assert {f.name: (f.min_version, f.max_version) for f in response.supported_features} == SUPPORTED
    finalized = response.finalized_features
    assert {f.name: f.max_version_level for f in finalized} == FINALIZED
    assert all(f.min_version_level == f.max_version_level for f in finalized)
    assert response.finalized_features_epoch == 11
    assert response.zk_migration_ready is False


def test_leaves_features_that_may_be_0_out_below_version_4(rig: Any) -> None:
    response = rig.ask(rig.connect(), java_client(), 3)
    assert [f.name for f in response.supported_features] == ["metadata.version"]
    assert len(response.finalized_features) == len(FINALIZED)


async def test_older_metadata_version_is_reported() -> None:
    async with Controller(metadata_version=7, kraft_version=0) as controller:
        levels = controller.running.controller.image.features
        assert levels["metadata.version"] == 7


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_answers_an_unknown_version_in_version_0(rig: Any, version: int) -> None:
    connection = rig.connect()
    header = b"\x00\x12" + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x2a\xff\xff"
    frame = header + (b"\x00" if version >= 3 else b"") + b"what a later client might say"
    rig.send(connection, len(frame).to_bytes(4, "big") + frame)
    (data,) = rig.sends()
    assert data[4:] == bytes.fromhex("0000002a 0023 00000001 0012 0000 0004")
    assert rig.ask(connection, java_client(), 4).error_code == error_codes.NONE


@pytest.mark.parametrize(
    ("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a", "1."), ("a b", "1"), ("ä", "1"), ("a\n", "1")]
)
def test_refuses_an_invalid_client_software(rig: Any, name: str, version: str) -> None:
    response = rig.ask(rig.connect(), java_client(name, version), 4)
    assert response.error_code == error_codes.INVALID_REQUEST
    assert response.api_keys == []


@pytest.mark.parametrize("name", ["a", "librdkafka", "a-b.c", "0.1-RC"])
def test_takes_a_valid_client_software(rig: Any, name: str) -> None:
    assert rig.ask(rig.connect(), java_client(name, name), 3).error_code == error_codes.NONE
