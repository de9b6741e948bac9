"""A test's own policies on new topics and changed configs, asked where Kafka asks its."""

import pytest
from mockraft.server.controller.settings.policies import AlteredConfigs, NewTopic
from mockraft.wire import error_codes
from mockraft.wire.messages.alter_configs_request import AlterableConfig as LegacyConfig
from mockraft.wire.messages.alter_configs_request import AlterConfigsRequest
from mockraft.wire.messages.alter_configs_request import AlterConfigsResource as LegacyResource
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

from ...configs import TOPIC, change_configs
from ...conftest import Cluster
from ...topics import assigned, topic


def create(cluster: Cluster, *topics: CreatableTopic) -> list[tuple[int, str | None]]:
    answer = cluster.ask(CreateTopicsRequest(topics=list(topics), timeout_ms=9000))
    return [(topic.error_code, topic.error_message) for topic in answer.topics]


def test_a_new_topic_is_shown_to_the_policy_after_all_other_checks(new_cluster: type[Cluster]) -> None:
    seen: list[NewTopic] = []

    def policy(topic: NewTopic) -> str | None:
        seen.append(topic)
        return "only small ones" if topic.num_partitions == 3 else None

    cluster = new_cluster(create_topic_policy=policy)
    cluster.start(1)
    assert create(
        cluster,
        topic("large", 3, 1),
        topic("small", retention_ms="5"),
        assigned("by-hand", [1]),
        topic("too wide", 1, 1),
        topic("wide", 3, 9),
    )[:3] == [(error_codes.POLICY_VIOLATION, "only small ones"), (0, None), (0, None)]
    assert seen == [
        NewTopic("large", 3, 1, None, {}),
        NewTopic("small", 1, 1, None, {"retention.ms": "5"}),
        NewTopic("by-hand", None, None, {0: [1]}, {}),
    ]


def test_policy_receives_changed_configs_only(new_cluster: type[Cluster]) -> None:
    seen: list[AlteredConfigs] = []

    def policy(altered: AlteredConfigs) -> str | None:
        seen.append(altered)
        return "not that long" if altered.configs.get("retention.ms") == "9" else None

    cluster = new_cluster(alter_config_policy=policy)
    cluster.start(1)
    cluster.create_topic("t", [1])

    def incremental(value: str | None, operation: int = 0) -> tuple[int, str | None]:
        (result,) = cluster.ask(change_configs((TOPIC, "t", (operation, "retention.ms", value)))).responses
        return result.error_code, result.error_message

    assert incremental("9") == (error_codes.POLICY_VIOLATION, "not that long")
    assert cluster.written() == []
    assert [incremental("5"), incremental("5"), incremental(None, 1), incremental("6")] == [(0, None)] * 4
    legacy = LegacyResource(resource_type=2, resource_name="t", configs=[LegacyConfig(name="segment.ms", value="7")])
    cluster.ask(AlterConfigsRequest(resources=[legacy]))
    result = [each.configs for each in seen]
    assert result == [
        *({"retention.ms": "9"}, {"retention.ms": "5"}, {}, {"retention.ms": None}, {"retention.ms": "6"}),
        {"segment.ms": "7"},
    ]
    assert {(each.resource_type, each.resource_name) for each in seen} == {(2, "t")}


def test_raising_policy_refuses_without_a_message(new_cluster: type[Cluster]) -> None:
    def policy(_topic: NewTopic) -> str | None:
        raise ValueError("a secret")

    cluster = new_cluster(create_topic_policy=policy)
    cluster.start(1)
    # The double's `ask` shows what the journal has of it, and the client has not.
    with pytest.raises(AssertionError, match="ValueError: a secret"):
        create(cluster, topic("t", 1, 1))
    assert cluster.written() == []
