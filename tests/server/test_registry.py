from typing import Any

import pytest
from mockraft.server.apis.registry import APIS
from mockraft.wire import api_keys, error_codes, messages
from mockraft.wire.messages.describe_acls_request import DescribeAclsRequest

FORWARDABLE = {19, 20, 37, 30, 31, 33, 44, 38, 39, 40, 43, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81}
"""ApiKeys.forwardable of Kafka 4.3.1."""


def test_every_api_of_this_listener_is_in_order_and_under_its_own_key() -> None:
    assert list(APIS) == sorted(APIS)
    for key, api in APIS.items():
        assert api.api_key == key
        assert api.request is messages.request(key)
        assert api.response is messages.response(key)
        assert api.request.min_version <= api.min_version <= api.max_version <= api.request.max_version


def test_forwarded_apis_equal_kafkas() -> None:
    assert {key for key, api in APIS.items() if api.forwardable} == FORWARDABLE & set(APIS)


@pytest.mark.parametrize("key", sorted(APIS), ids=api_keys.name)
def test_the_error_form_can_be_written_in_every_version(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        request = api.request.read(api.request().write(version), version)
        response = api.error(request, error_codes.UNKNOWN_SERVER_ERROR, "why")
        assert api.response.read(response.write(version), version) is not None


@pytest.mark.parametrize("key", sorted(APIS), ids=api_keys.name)
def test_every_api_takes_its_default_request_in_every_version(make_rig: Any, controller: Any, key: int) -> None:
    rig = make_rig(*APIS.values(), controller=controller)
    api = APIS[key]
    # Kafka refuses the defaults of DescribeAcls, which say UNKNOWN.
    filters = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    request = api.request(**filters) if api.request is DescribeAclsRequest else api.request()
    for version in range(api.min_version, api.max_version + 1):
        rig.send(rig.connect(), rig.frame(request, version))
        assert rig.closes() == []
        assert rig.sends() or rig.node.parked
    assert [exchange.failure for exchange in rig.node.journal.exchanges() if exchange.failure] == []
