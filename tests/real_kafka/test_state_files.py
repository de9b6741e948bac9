"""States that are saved and loaded: Kafka's tools read the file, and real brokers run on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaBroker, KafkaTool, wait_until
from mockraft.wire.json_form import Json

from ..clients import create_topic

pytestmark = pytest.mark.real_kafka

CreateTopic = Callable[..., None]


def test_a_saved_state_is_read_by_kafkas_tools_and_a_real_broker_runs_on_it(
    tmp_path: Path, start_brokers: Callable[..., dict[int, KafkaBroker]]
) -> None:
    with Controller.sync(session_timeout_ms=3_000) as controller:
        controller.start_broker(7)
        state = controller._controller.double.state
        topic: dict[str, Json] = {"name": "kept", "topicId": "AAAAAAAAAAAAAAAAAAAABQ"}
        partition: dict[str, Json] = {
            "partitionId": 0,
            "topicId": topic["topicId"],
            "replicas": [7],
            "isr": [7],
            "leader": 7,
        }
        partition |= {"leaderEpoch": 0, "partitionEpoch": 0, "directories": ["AAAAAAAAAAAAAAAAAAAAAQ"]}
        partition |= {"removingReplicas": [], "addingReplicas": [], "leaderRecoveryState": 0}
        records: list[Mapping[str, Json]] = [
            {"type": "TopicRecord", "record": topic},
            {"type": "PartitionRecord", "record": partition},
        ]
        controller.call(lambda: state.append(records))
        saved = controller.call(lambda: state.save(tmp_path))

    printed = KafkaTool("kafka-dump-log").run("--cluster-metadata-decoder", "--files", str(saved))
    assert re.search(r'"type":"TOPIC_RECORD","version":0,"data":\{"name":"kept"', printed)
    assert '"type":"REGISTER_BROKER_RECORD"' in printed
    assert "isvalid: false" not in printed

    def shell_prints() -> bool:
        shell = KafkaTool("kafka-metadata-shell").run("--snapshot", str(saved), "find", "/image")
        return "/image/cluster/brokers/7\n" in shell and "/image/topics/byName/kept" in shell

    assert wait_until(shell_prints, 30, "the saved state in kafka-metadata-shell")

    with Controller.sync(state=saved) as controller:
        brokers = start_brokers(controller.bootstrap, controller.cluster_id, 1)
        # Until its session is over broker 7 counts as alive, and brokers name any that is to clients as the controller.
        wait_until(lambda: controller.call(lambda: controller.double.state.broker(7).fenced), 60, "broker 7 fenced")
        create_topic(brokers[1].bootstrap, "new")
        described = KafkaTool("kafka-topics").run("--bootstrap-server", brokers[1].bootstrap, "--list")
        assert {"kept", "new"} <= set(described.split())
        assert brokers[1].stop() == 143
