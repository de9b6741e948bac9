"""AlterConfigs and IncrementalAlterConfigs: what the broker refuses itself, and what it hands on in which order."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mockraft.brokers.apis.registry import APIS
from mockraft.kafka_api.api import NEVER_MS, Parked
from mockraft.wire import error_codes
from mockraft.wire.connection import parse_request
from mockraft.wire.errors import ApiError
from mockraft.wire.messages import alter_configs_request as legacy
from mockraft.wire.messages import incremental_alter_configs_request as incremental
from mockraft.wire.records.config_record import ConfigRecord

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)
LOG_DIR = "/simulated/broker-1/d0"
OFFLINE_DIR = "/simulated/offline"

Resource = tuple[int, str, list[tuple[str, str | None, int]]]


class Controllers:
    """Says of every resource that comes that it is POLICY_VIOLATION, or nothing at all."""

    api_versions = None

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.is_there = True

    def forward(self, api: Any, ctx: Any, frame: bytes) -> Parked[bytes]:
        return Parked(NEVER_MS, lambda _now_ms, _expired: self.answer(api, ctx, frame))

    def answer(self, api: Any, ctx: Any, frame: bytes) -> bytes:
        header = parse_request(frame)
        assert (header.correlation_id, header.client_id) == (ctx.correlation_id, ctx.client_id)
        if not self.is_there:
            raise ApiError(error_codes.REQUEST_TIMED_OUT)
        read = api.request.read_from(frame, header.api_version, header.body_offset)[0]
        self.asked.append(read)
        return bytes(api.error(read, error_codes.POLICY_VIOLATION, "not so").write(ctx.api_version))


@pytest.fixture
def cluster(cluster: Any) -> Any:
    cluster.register(1)
    cluster.broker.forwarding = Controllers()
    return cluster


def changing(*resources: Resource, validate_only: bool = False) -> Any:
    return incremental.IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, value=value, config_operation=operation)
                    for key, value, operation in configs
                ],
            )
            for kind, name, configs in resources
        ],
    )


def replacing(*resources: Resource) -> Any:
    return legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[legacy.AlterableConfig(name=key, value=value) for key, value, _ in configs],
            )
            for kind, name, configs in resources
        ]
    )


def test_what_is_refused_here_does_not_reach_the_controller_and_answers_keep_their_order(cluster: Any) -> None:
    request = changing(
        (BROKER, "2", [("log.cleaner.threads", "2", SET)]),
        (TOPIC, "t", [("retention.ms", "1", SET)]),
        (TOPIC, "u", [("retention.ms", "1", SET), ("retention.ms", "2", SET)]),
        (BROKER, "1", [("log.cleaner.threads", "2", SET)]),
        validate_only=True,
    )
    response = cluster.ask(request)
    assert [(each.resource_name, each.error_code, each.error_message) for each in response.responses] == [
        ("2", error_codes.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
        ("t", error_codes.POLICY_VIOLATION, "not so"),
        ("u", error_codes.INVALID_REQUEST, "Error due to duplicate config keys"),
        ("1", error_codes.POLICY_VIOLATION, "not so"),
    ]
    (asked,) = cluster.broker.forwarding.asked
    assert ([each.resource_name for each in asked.resources], asked.validate_only) == (["t", "1"], True)


def test_nothing_left_is_not_handed_on(cluster: Any) -> None:
    response = cluster.ask(changing((TOPIC, "t", []), (TOPIC, "t", [])))
    assert {each.error_message for each in response.responses} == {"Each resource must appear at most once."}
    assert len(response.responses) == 2
    assert cluster.broker.forwarding.asked == []


@pytest.mark.parametrize("make", [changing, replacing])
def test_no_controller_is_an_error_of_what_would_have_been_handed_on(cluster: Any, make: Any) -> None:
    cluster.broker.forwarding.is_there = False
    response = cluster.ask(make((TOPIC, "t", [("retention.ms", "1", SET)]), (99, "x", [])))
    assert [each.error_code for each in response.responses] == [
        error_codes.REQUEST_TIMED_OUT,
        error_codes.INVALID_REQUEST,
    ]


@pytest.mark.parametrize(
    ("kind", "name", "configs", "message"),
    [
        (BROKER, "x", [], "Node id must be an integer, but it is: x"),
        (BROKER, "9" * 5000, [], f"Node id must be an integer, but it is: {'9' * 5000}"),
        (
            TOPIC,
            "t",
            [("retention.ms", None, SET), ("segment.ms", None, APPEND)],
            "Null value not supported for : retention.ms, segment.ms",
        ),
        (99, "x", [], "Unknown resource type 99"),
        (BROKER, "1", [("node.id", "2", SET)], "Cannot update these configs dynamically: [node.id]"),
        (
            BROKER,
            "1",
            [("ssl.keystore.location", "f", SET)],
            "only per-listener using the listener prefix: [ssl.keystore.location]",
        ),
        (BROKER, "", [("cordoned.log.dirs", LOG_DIR, SET)], "broker id must be specified: [cordoned.log.dirs]"),
        (
            BROKER,
            "1",
            [("log.cleaner.threads", "many", SET)],
            "Invalid value many for configuration log.cleaner.threads",
        ),
        (BROKER, "1", [("log.cleaner.threads", "-1", SET)], "Invalid value -1 for configuration log.cleaner"),
        (BROKER, "1", [("log.cleaner.threads", "2", 7)], "Unknown operations type 7"),
        (
            BROKER,
            "1",
            [("cordoned.log.dirs", "/nope,/nor", SET)],
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
            "Missing entries : /nope, /nor",
        ),
        (BROKER, "1", [("cordoned.log.dirs", f"*,{LOG_DIR}", SET)], "it must not contain other values"),
        *[
            (BROKER, "1", [(key, value, SET)], f"Configuration '{key}' values must not be duplicated.")
            for key, value in (("cordoned.log.dirs", f"{LOG_DIR},{LOG_DIR}"), ("log.cleanup.policy", "delete,delete"))
        ],
        (BROKER_LOGGER, "2", [], "Unexpected node id. Expected 1, but received 2"),
        (
            BROKER_LOGGER,
            "1",
            [("root", "INFO", APPEND)],
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_a_change_that_a_broker_would_not_take_is_refused(
    cluster: Any, kind: int, name: str, configs: Any, message: str
) -> None:
    (result,) = (cluster.ask(changing((kind, name, configs)))).responses
    assert result.error_code == error_codes.INVALID_REQUEST
    assert message in result.error_message
    assert cluster.broker.forwarding.asked == []


@pytest.mark.parametrize(
    ("kind", "key", "operation", "message"),
    [
        (BROKER, "no.such.key", APPEND, "Unknown config name: no.such.key"),
        (BROKER, "num.io.threads", APPEND, "Config value append is not allowed for config key: num.io.threads"),
        (BROKER, "num.io.threads", SUBTRACT, "Config value subtract is not allowed for config key: num.io.threads"),
        (BROKER_LOGGER, "kafka", SET, "Logger kafka does not exist!"),
    ],
)
def test_a_config_that_is_none_is_invalid(cluster: Any, kind: int, key: str, operation: int, message: str) -> None:
    (result,) = (cluster.ask(changing((kind, "1", [(key, "1", operation)])))).responses
    assert (result.error_code, result.error_message) == (error_codes.INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("value", "operation"),
    [(LOG_DIR, SET), (OFFLINE_DIR, SET), ("*", SET), ("", SET), (LOG_DIR, APPEND), ("/gone", SUBTRACT), (None, DELETE)],
)
def test_cordoning_ones_own_directories_is_handed_on(cluster: Any, value: str | None, operation: int) -> None:
    cluster.broker.config = replace(cluster.broker.config, offline_log_dirs={OFFLINE_DIR: "it is a file"})
    (result,) = (cluster.ask(changing((BROKER, "1", [("cordoned.log.dirs", value, operation)])))).responses
    assert result.error_code == error_codes.POLICY_VIOLATION


def test_what_was_set_before_counts(cluster: Any) -> None:
    cluster.apply(ConfigRecord(resource_type=BROKER, resource_name="1", name="cordoned.log.dirs", value="/gone"))
    (result,) = (cluster.ask(changing((BROKER, "1", [("log.cleaner.threads", "2", SET)])))).responses
    assert "Missing entries : /gone" in result.error_message


def test_legacy_requests_are_looked_at_alike(cluster: Any) -> None:
    request = replacing((BROKER, "1", [("node.id", "2", 0)]), (BROKER_LOGGER, "1", []), (TOPIC, "t", [("k", None, 0)]))
    response = cluster.ask(request)
    assert [each.error_message for each in response.responses] == [
        "Cannot update these configs dynamically: [node.id]",
        "Unknown resource type 8",
        "Null value not supported for : k",
    ]


def test_both_can_say_an_error_in_every_version() -> None:
    for api in (APIS[33], APIS[44]):
        for version in range(api.versions[0], api.versions[1] + 1):
            resources = [SimpleNamespace(resource_type=2, resource_name="t")]
            request = SimpleNamespace(api_key=api.api_key, resources=resources)
            error = api.error(request, error_codes.REQUEST_TIMED_OUT, None)
            assert api.response.read(error.write(version), version).responses[0].error_code == 7
