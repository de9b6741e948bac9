"""AlterConfigs, which replaces the configs of a resource, and IncrementalAlterConfigs."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from mockraft.wire.messages.alter_configs_request import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from mockraft.wire.records.clear_elr_record import ClearElrRecord

from ...configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    Resource,
    change_configs,
    config_record,
)
from ...conftest import Cluster
from ...rows import each_row


def request(*resources: tuple[int, str, Mapping[str, str | None]], validate_only: bool = False) -> AlterConfigsRequest:
    """Resources as (type, name, values)."""
    return AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in values.items()],
            )
            for kind, name, values in resources
        ],
        validate_only=validate_only,
    )


def said(response: Any) -> list[tuple[int, str, int]]:
    return [(each.resource_type, each.resource_name, each.error_code) for each in response.responses]


def incremental(*resources: tuple[int, str, Mapping[str, str | None]]) -> IncrementalAlterConfigsRequest:
    """Resources as (type, name, values to set)."""
    asked: list[Resource] = []
    for kind, name, values in resources:
        asked.append((kind, name, *((SET, key, value) for key, value in values.items())))
    return change_configs(*asked)


both = pytest.mark.parametrize("asking", [request, incremental], ids=["AlterConfigs", "IncrementalAlterConfigs"])


@both
def test_broker_may_cordon_where_a_direct_request_may_not(topic: Cluster, asking: Any) -> None:
    cordon = asking((BROKER, "1", {"cordoned.log.dirs": "/a,/b"}))
    assert said(topic.ask(cordon)) == [(BROKER, "1", 40)]
    assert said(topic.ask(cordon, forwarded=True)) == [(BROKER, "1", 0)]
    assert said(topic.ask(asking((BROKER, "1", {"cordoned.log.dirs": " /b "})))) == [(BROKER, "1", 0)]
    assert said(topic.ask(cordon)) == [(BROKER, "1", 40)]


@both
def test_too_many_changes_are_refused_as_a_whole(topic: Cluster, asking: Any) -> None:
    values = {f"key.{number}": "x" for number in range(10_001)}
    (answer,) = topic.ask(asking((BROKER, "1", values))).responses
    assert (answer.error_code, answer.error_message) == (44, "Unable to perform excessively large batch operation.")
    assert topic.written() == []


def test_unmentioned_keys_are_deleted_after_the_changes(topic: Cluster) -> None:
    topic.set_config("t", "retention.ms", "1")
    topic.set_config("t", "segment.ms", "2")
    response = topic.ask(request((TOPIC, "t", {"segment.ms": "2", "flush.ms": "3"})))
    assert said(response) == [(TOPIC, "t", 0)]
    assert topic.written() == [
        config_record(TOPIC, "t", "flush.ms", "3"),
        config_record(TOPIC, "t", "retention.ms", None),
    ]


def test_a_null_value_deletes_too(topic: Cluster) -> None:
    topic.set_config("t", "retention.ms", "1")
    topic.ask(request((TOPIC, "t", {"retention.ms": None, "segment.ms": None})))
    assert topic.written() == [config_record(TOPIC, "t", "retention.ms", None)]


def test_implicit_deletion_is_validated(topic: Cluster) -> None:
    response = topic.ask(request((BROKER, "", {"num.io.threads": "9"}), (BROKER, "1", {})))
    assert said(response) == [(BROKER, "", 40), (BROKER, "1", 0)]
    assert response.responses[0].error_message == (
        "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    )
    assert topic.written() == []


def test_a_bad_resource_leaves_the_others_alone(topic: Cluster) -> None:
    resources = [(TOPIC, "nowhere", {}), (GROUP, "g", {"no.such": "1"}), (CLIENT_METRICS, "m", {"interval.ms": "100"})]
    response = topic.ask(request(*resources))
    assert said(response) == [(TOPIC, "nowhere", 3), (GROUP, "g", 40), (CLIENT_METRICS, "m", 0)]
    assert topic.written() == [config_record(CLIENT_METRICS, "m", "interval.ms", "100")]


def test_repeated_resource_is_unchanged(topic: Cluster) -> None:
    response = topic.ask(request(*[(TOPIC, "t", {"flush.ms": "1"})] * 3, (BROKER, "1", {})))
    assert said(response) == [(TOPIC, "t", 42), (BROKER, "1", 0)]
    assert response.responses[0].error_message == "Duplicate resource."
    assert topic.written() == []


def test_types_that_have_no_configs_are_refused(topic: Cluster) -> None:
    response = topic.ask(request((BROKER_LOGGER, "3000", {"root": "INFO"}), (3, "x", {}), (3, "x", {})))
    assert [(each.error_code, each.error_message) for each in response.responses] == [
        (35, "Unknown resource type 3."),
        (35, "Unknown resource type 3."),
        (42, "Unexpected resource type BROKER_LOGGER."),
    ]


def test_validate_only_writes_no_record(topic: Cluster) -> None:
    response = topic.ask(request((TOPIC, "t", {"flush.ms": "5"}), validate_only=True))
    assert said(response) == [(TOPIC, "t", 0)]
    assert topic.written() == []


def test_good_resources_are_changed_together_and_a_bad_key_spoils_only_its_own(topic: Cluster) -> None:
    response = topic.ask(
        change_configs(
            (TOPIC, "t", (SET, "retention.ms", "5")),
            (TOPIC, "nowhere", (SET, "retention.ms", "5")),
            (BROKER, "1", (SET, "num.io.threads", "9"), (APPEND, "num.io.threads.more", "1")),
            (BROKER, "2", (SET, "num.io.threads", "9")),
        )
    )
    assert said(response) == [(TOPIC, "t", 0), (TOPIC, "nowhere", 3), (BROKER, "1", 40), (BROKER, "2", 0)]
    assert topic.written() == [
        config_record(TOPIC, "t", "retention.ms", "5"),
        config_record(BROKER, "2", "num.io.threads", "9"),
    ]


def test_records_that_clear_elr_come_last(topic: Cluster) -> None:
    key = "min.insync.replicas"
    topic.ask(change_configs((BROKER, "", (SET, key, "2")), (TOPIC, "t", (SET, key, "2"), (SET, "flush.ms", "1"))))
    records = [record for record, _ in topic.written()]
    assert records[3:] == [ClearElrRecord(topic_name=""), ClearElrRecord(topic_name="t")]


@pytest.mark.parametrize(("operation", "value"), [(4, "x"), (-1, None), (APPEND, None), (SUBTRACT, None)])
def test_an_operation_that_kafka_breaks_on_spoils_the_request(
    topic: Cluster, operation: int, value: str | None
) -> None:
    good = (BROKER, "", (SET, "num.io.threads", "9"))
    response = topic.ask(change_configs(good, (TOPIC, "t", (operation, "cleanup.policy", value))))
    assert said(response) == [(BROKER, "", -1), (TOPIC, "t", -1)]
    assert topic.written() == []


def test_a_broker_logger_is_this_controllers_and_answers_last(topic: Cluster) -> None:
    resources = [(BROKER_LOGGER, name) for name in ("3000", "1", "x")]
    response = topic.ask(change_configs(*resources, (BROKER, "1")))
    assert said(response) == [(BROKER, "1", 0), (BROKER_LOGGER, "3000", 0), *((8, name, 42) for name in ("1", "x"))]


@each_row(
    ("logger", "operation", "level", "code", "message"),
    [
        ("mockraft.raft", SET, "ERROR", 0, None),
        ("mockraft.raft", DELETE, None, 0, None),
        ("root", SET, "TRACE", 0, None),
        ("kafka.server", SET, "INFO", 40, "Logger kafka.server does not exist!"),
        (
            "mockraft.raft",
            SET,
            "warn",
            40,
            "Cannot set the log level of mockraft.raft to warn as it is not a supported",
        ),
        ("root", DELETE, None, 42, "Removing the log level of the root logger is not allowed"),
        ("root", APPEND, "INFO", 42, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    ],
)
def test_log_levels_are_mockrafts_own_in_this_process(
    new_cluster: type[Cluster], logger: str, operation: int, level: str | None, code: int, message: str | None
) -> None:
    cluster, own = new_cluster(), logging.getLogger("mockraft" if logger == "root" else logger)
    before = own.level
    try:
        (answer,) = cluster.ask(change_configs((BROKER_LOGGER, "3000", (operation, logger, level)))).responses
        assert (answer.error_code, (answer.error_message or "")[: len(message or "")]) == (code, message or "")
        node = DescribeConfigsResource(resource_type=BROKER_LOGGER, resource_name="3000", configuration_keys=[logger])
        (result,) = cluster.ask(DescribeConfigsRequest(resources=[node], include_synonyms=True)).results
        if level is not None and not code:
            ((config,),) = [result.configs]
            assert (config.value, config.config_source, config.synonyms) == (level, 6, [])
        assert (own.level == before) == (bool(code) or level is None)
    finally:
        own.setLevel(before)
