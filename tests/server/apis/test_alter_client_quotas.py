"""AlterClientQuotas: every rule, and the records."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.alter_client_quotas_response import AlterClientQuotasResponse

from ...conftest import Cluster
from ...rows import each_row

USER, CLIENT, IP = "user", "client-id", "ip"
RATE, CONNECTIONS, PERCENTAGE = "producer_byte_rate", "connection_creation_rate", "request_percentage"
ADDRESSES = ("10.0.0.1", "::1", "[fe80::1]", "localhost", None, "127.1", "16909060")
NOT_LOOKED_UP = ("10.0.0.256", "1.2.3.4.5", "fe80::1%lo", "nowhere.example", "1.2.3.4/24")


Entity = Mapping[str, str | None]


def entry(entity: Entity, *changes: tuple[str, float | None]) -> EntryData:
    """An entity as a dict, changes as (key, value)."""
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
    )


def request(*entries: EntryData, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def said(response: AlterClientQuotasResponse) -> list[tuple[Entity, int]]:
    return [
        ({part.entity_type: part.entity_name for part in each.entity}, each.error_code) for each in response.entries
    ]


def written(cluster: Cluster) -> list[tuple[Entity, str, float | None]]:
    return [
        (
            {part.entity_type: part.entity_name for part in record.entity},
            record.key,
            None if record.remove else record.value,
        )
        for record, version in cluster.written()
        if version == 0
    ]


def test_unchanged_quota_is_not_written(new_cluster: type[Cluster]) -> None:
    cluster = new_cluster(release="4.3")  # newer controllers refuse NaN
    asked = request(entry({USER: "ann"}, (RATE, 5), ("request_percentage", math.nan)))
    cluster.ask(asked)
    assert len(written(cluster)) == 2
    assert said(cluster.ask(asked)) == [({USER: "ann"}, 0)]
    assert written(cluster) == []
    cluster.ask(request(entry({USER: "ann"}, ("consumer_byte_rate", None), ("no.such", None))))
    assert written(cluster) == []


def test_an_entity_is_the_same_in_any_order(cluster: Cluster) -> None:
    cluster.ask(request(entry({USER: "ann", CLIENT: None}, (RATE, 5))))
    (record,) = (record for record, _ in cluster.written())
    assert [part.entity_type for part in record.entity] == [CLIENT, USER]
    cluster.ask(request(entry({CLIENT: None, USER: "ann"}, (RATE, 5))))
    assert cluster.written() == []


@pytest.mark.parametrize(("entity", "key"), [*(({IP: name}, CONNECTIONS) for name in ADDRESSES), ({USER: None}, RATE)])
def test_an_ip_is_an_address_and_an_entity_may_be_the_default(cluster: Cluster, entity: Entity, key: str) -> None:
    assert said(cluster.ask(request(entry(entity, (key, 1))))) == [(entity, 0)]
    assert len(written(cluster)) == 1


@pytest.mark.parametrize(
    ("entity", "changes", "why"),
    [
        ({USER: ""}, [], "Empty user not supported"),
        ({USER: "a", CLIENT: ""}, [], "Empty client-id not supported"),
        ({"group": "g"}, [], "Unhandled client quota entity type: group"),
        (
            {IP: "10.0.0.1", USER: "ann"},
            [],
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        *(({IP: name}, [], f"{name} is not a valid IP or resolvable host.") for name in NOT_LOOKED_UP),
        ({IP: None}, [(RATE, 1)], f"Invalid configuration key {RATE}"),
        ({USER: "a"}, [("request_percentage", -0.5)], "Quota request_percentage must be greater than 0"),
        ({USER: "a"}, [(RATE, 2.0**64)], f"Proposed value for {RATE} is too large for a LONG."),
        ({IP: None}, [(CONNECTIONS, 2.0**31)], f"Proposed value for {CONNECTIONS} is too large for an INT."),
        ({CLIENT: "c"}, [(RATE, 1.5)], f"{RATE} cannot be a fractional value."),
        ({USER: "ann"}, [(RATE, 1), (RATE, 1)], "Ignoring duplicate entity ClientQuotaEntity(entries={user=ann})"),
    ],
)
def test_refuses_a_bad_entity_key_or_value(cluster: Cluster, entity: Entity, changes: Any, why: str) -> None:
    (answer,) = cluster.ask(request(entry(entity, *changes))).entries
    assert (answer.error_code, answer.error_message) == (error_codes.INVALID_REQUEST, why)
    assert cluster.written() == []


def test_too_many_changes_are_refused_as_a_whole(cluster: Cluster) -> None:
    entries = [entry({USER: str(number)}, (RATE, 1)) for number in range(10_001)]
    response = cluster.ask(request(*entries, validate_only=True))
    assert {code for _, code in said(response)} == {error_codes.POLICY_VIOLATION}


@each_row("value", [math.inf, math.nan])
@each_row(("release", "message"), [("4.3", None), ("4.4", f"Quota {PERCENTAGE} must be a finite number")])
def test_quotas_are_finite_from_release_4_4_on(
    new_cluster: type[Cluster], value: float, release: str, message: str | None
) -> None:
    (answer,) = new_cluster(release=release).ask(request(entry({USER: "ann"}, (PERCENTAGE, value)))).entries
    assert (answer.error_code, answer.error_message) == (error_codes.INVALID_REQUEST if message else 0, message)
