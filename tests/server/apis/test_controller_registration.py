from typing import Any

import pytest
from mockraft.server.controller.brokers.registration import register_controller
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener
from mockraft.wire.scram import ScramUser

from ...conftest import Cluster


def request(**fields: Any) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        **{
            "controller_id": 3001,
            "incarnation_id": bytes(15) + b"\xff",
            "zk_migration_ready": True,
            "listeners": [Listener(name="CONTROLLER", host="c", port=9093, security_protocol=0)],
            "features": [Feature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
            **fields,
        }
    )


def test_below_its_level_it_is_unsupported(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(metadata_version=14)
    response = cluster.ask(request())
    assert response.error_code == error_codes.UNSUPPORTED_VERSION
    assert response.error_message == "The version of API is not supported."
    assert cluster.controller.image.cluster.controllers == {}


def test_one_record_keeps_endpoints_and_features_and_never_a_migration(cluster: Cluster) -> None:
    response = cluster.ask(request())
    assert (response.error_code, response.error_message) == (0, "")
    [(record, version)] = cluster.written()
    assert (version, record.controller_id, record.zk_migration_ready) == (0, 3001, False)
    registration = cluster.controller.image.cluster.controllers[3001]
    assert registration.endpoints[0].port == 9093
    assert registration.features["kraft.version"].max_version == 1


def test_other_fields_are_not_validated(cluster: Cluster) -> None:
    assert cluster.ask(request(controller_id=-1, listeners=[], features=[])).error_code == 0


@pytest.mark.parametrize("listener", [{"host": ""}, {"port": 0}, {"security_protocol": 7}])
def test_a_listener_that_breaks_a_real_controller_is_refused(cluster: Cluster, listener: dict[str, Any]) -> None:
    values = {"name": "C", "host": "h", "port": 9093, "security_protocol": 0, **listener}
    assert cluster.ask(request(listeners=[Listener(**values)])).error_code == error_codes.UNKNOWN_SERVER_ERROR


def test_a_controller_registers_itself_at_its_start(cluster: Cluster) -> None:
    registration = cluster.controller.image.cluster.controllers[cluster.config.node_id]
    assert (registration.endpoints[0].name, registration.endpoints[0].port) == ("CONTROLLER", cluster.config.voter_port)
    assert registration.features["metadata.version"].max_version == 33


def test_a_controller_does_not_register_itself_below_its_level(new_cluster: type[Cluster]) -> None:
    assert new_cluster(metadata_version=14).controller.image.cluster.controllers == {}


def test_a_controller_whose_place_was_taken_registers_again(cluster: Cluster) -> None:
    registered = cluster.controller.image.cluster.controllers[3000]
    assert cluster.ask(request(controller_id=3000)).error_code == 0
    assert cluster.controller.image.cluster.controllers[3000] != registered
    assert cluster.controller.next_tick_ms(cluster.now_ms) == cluster.now_ms
    cluster.advance(0)
    [(record, _)] = cluster.written()
    assert (record.controller_id, record.incarnation_id) == (3000, cluster.controller.incarnation_id)
    assert cluster.controller.image.cluster.controllers[3000] == registered
    assert cluster.controller.next_tick_ms(cluster.now_ms) > cluster.now_ms


def test_the_record_has_the_listeners_protocol(cluster: Cluster) -> None:
    cluster.ask(request(listeners=[Listener(name="C", host="h", port=9093, security_protocol=3)]))
    assert cluster.controller.image.cluster.controllers[3001].endpoints[0].security_protocol == 3


def test_a_listener_that_cannot_be_written_is_named(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="Cannot serialize ephemeral port 0 in ListenerInfo"):
        register_controller(cluster.controller, request(listeners=[Listener(name="C", host="h", port=0)]))


def test_a_controller_registers_its_protocol_and_its_lowest_levels(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(
        security_protocol="SASL_PLAINTEXT",
        sasl_enabled_mechanisms=("SCRAM-SHA-256",),
        scram_users=(ScramUser("alice", "secret"),),
    )
    registration = cluster.controller.image.cluster.controllers[cluster.config.node_id]
    assert registration.endpoints[0].security_protocol == 2
    assert registration.features["metadata.version"].min_version == 7
