import pytest
from mockraft.server.apis import incremental_alter_configs
from mockraft.wire import error_codes
from mockraft.wire.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from mockraft.wire.records.clear_elr_record import ClearElrRecord

from ...configs import APPEND, BROKER, BROKER_LOGGER, SET, SUBTRACT, TOPIC, change_configs, config_record
from ...conftest import Cluster


def said(response: IncrementalAlterConfigsResponse) -> list[tuple[int, str, int]]:
    return [(each.resource_type, each.resource_name, each.error_code) for each in response.responses]


def test_good_resources_are_changed_together_and_a_bad_key_spoils_only_its_own(topic: Cluster) -> None:
    response = topic.ask(
        change_configs(
            (TOPIC, "t", (SET, "retention.ms", "5")),
            (TOPIC, "nowhere", (SET, "retention.ms", "5")),
            (BROKER, "1", (SET, "num.io.threads", "9"), (APPEND, "num.io.threads.more", "1")),
            (BROKER, "2", (SET, "num.io.threads", "9")),
        ),
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


def test_validate_only_writes_no_record(topic: Cluster) -> None:
    response = topic.ask(change_configs((TOPIC, "t", (SET, "retention.ms", "5")), validate_only=True))
    assert said(response) == [(TOPIC, "t", 0)]
    assert topic.written() == []


def test_repeated_resource_is_unchanged(topic: Cluster) -> None:
    change = (SET, "retention.ms", "5")
    response = topic.ask(change_configs((TOPIC, "t", change), (TOPIC, "t", change), (TOPIC, "t", change), (BROKER, "")))
    assert said(response) == [(TOPIC, "t", 42), (BROKER, "", 0)]
    assert response.responses[0].error_message == "Duplicate resource."
    assert topic.written() == []


def test_an_unknown_resource_type_is_refused_by_its_number(topic: Cluster) -> None:
    response = topic.ask(change_configs((3, "x"), (0, "y")))
    assert [(each.error_code, each.error_message) for each in response.responses] == [
        (35, "Unknown resource type 3."),
        (35, "Unknown resource type 0."),
    ]


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


def test_a_broker_logger_has_no_loggers(topic: Cluster) -> None:
    resource = (BROKER_LOGGER, "3000", (SET, "kafka.server", "INFO"))
    (answer,) = topic.ask(change_configs(resource)).responses
    assert (answer.error_code, answer.error_message) == (40, "Logger kafka.server does not exist!")


def test_broker_may_cordon_where_a_direct_request_may_not(topic: Cluster) -> None:
    cordon = change_configs((BROKER, "1", (SET, "cordoned.log.dirs", "/a,/b")))
    assert said(topic.ask(cordon)) == [(BROKER, "1", 40)]
    assert said(topic.ask(cordon, forwarded=True)) == [(BROKER, "1", 0)]
    assert said(topic.ask(change_configs((BROKER, "1", (SET, "cordoned.log.dirs", " /b "))))) == [(BROKER, "1", 0)]
    assert said(topic.ask(cordon)) == [(BROKER, "1", 40)]


def test_too_many_changes_are_refused_as_a_whole(topic: Cluster) -> None:
    changes = [(SET, f"key.{number}", "x") for number in range(10_001)]
    (answer,) = topic.ask(change_configs((BROKER, "1", *changes))).responses
    assert (answer.error_code, answer.error_message) == (44, "Unable to perform excessively large batch operation.")
    assert topic.written() == []


def test_returns_an_error_for_each_resource() -> None:
    asked = change_configs((TOPIC, "t"), (BROKER, ""))
    response = incremental_alter_configs.API.error(asked, error_codes.NOT_CONTROLLER, "no")
    assert said(response) == [(TOPIC, "t", 41), (BROKER, "", 41)]
    assert {each.error_message for each in response.responses} == {"no"}
