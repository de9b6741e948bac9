from typing import Any

import pytest
from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.wire import error_codes
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Listener
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_cluster_response import DescribeClusterBroker

CONTROLLERS = DescribeClusterRequest(endpoint_type=2)


@pytest.fixture
def rig(make_rig: Any, controller: Any) -> Any:
    return make_rig(*APIS.values(), controller=controller)


@pytest.mark.parametrize("version", [1, 2])
def test_lists_the_controllers(rig: Any, version: int) -> None:
    response = rig.ask(rig.connect(), CONTROLLERS, version)
    config = rig.controller.config
    assert (response.error_code, response.endpoint_type, response.cluster_id) == (0, 2, config.cluster_id)
    assert response.controller_id == config.node_id
    assert response.brokers == [DescribeClusterBroker(broker_id=config.node_id, host="127.0.0.1", port=9093)]
    assert response.cluster_authorized_operations == -(1 << 31)


def test_lists_another_controllers_endpoint_on_this_listener_only(rig: Any) -> None:
    other = ControllerRegistrationRequest(
        controller_id=3001,
        incarnation_id=bytes(range(16)),
        listeners=[
            Listener(name="CONTROLLER", host="there", port=1234, security_protocol=0),
            Listener(name="OTHER", host="elsewhere", port=99, security_protocol=0),
        ],
    )
    assert rig.ask(rig.connect(), other, 0).error_code == error_codes.NONE
    response = rig.ask(rig.connect(), CONTROLLERS, 2)
    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [
        (3000, "127.0.0.1", 9093),
        (3001, "there", 1234),
    ]


def test_authorized_operations_are_included_on_request(rig: Any) -> None:
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    assert rig.ask(rig.connect(), request, 2).cluster_authorized_operations == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    ("endpoint_type", "version", "code"),
    [
        (1, 0, error_codes.INVALID_REQUEST),
        (1, 1, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (1, 2, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (3, 1, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
        (-1, 2, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_refuses_other_endpoint_types(rig: Any, endpoint_type: int, version: int, code: int) -> None:
    response = rig.ask(rig.connect(), DescribeClusterRequest(endpoint_type=endpoint_type), version)
    assert response.error_code == code
    assert response.brokers == []


@pytest.mark.parametrize(("metadata_version", "code"), [(14, error_codes.UNSUPPORTED_VERSION), (15, error_codes.NONE)])
def test_needs_controller_registration(make_rig: Any, make_controller: Any, metadata_version: int, code: int) -> None:
    controller = make_controller(ControllerConfig(metadata_version=metadata_version))
    rig = make_rig(*APIS.values(), controller=controller)
    assert rig.ask(rig.connect(), CONTROLLERS, 2).error_code == code
