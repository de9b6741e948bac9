"""Kafka's own integration tests with mockraft as the controller."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.cluster_tests import cluster_test_classes, run_cluster_tests

from tests.budgets import soak

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(900)]

VERSION = "4.3.1"


@pytest.mark.parametrize(
    ("test_class", "isolated", "combined"),
    [
        ("org.apache.kafka.server.BrokerRegistrationRequestTest", 4, 0),
        ("org.apache.kafka.server.config.MinInSyncReplicasConfigTest", 1, 1),
        pytest.param("org.apache.kafka.server.quota.ClientQuotasRequestTest", 12, 12, marks=soak),
        pytest.param("org.apache.kafka.server.MetadataRequestTest", 14, 14, marks=soak),
    ],
)
def test_kafkas_own_tests_pass(test_class: str, isolated: int, combined: int, tmp_path: Path) -> None:
    results = run_cluster_tests([test_class], tmp_path, version=VERSION)
    assert [result for result in results if result.outcome == "failed"] == []
    assert Counter(result.outcome for result in results) == Counter(passed=isolated, skipped=combined)
    assert "mockraft.serve: stopping" in (tmp_path / "mockraft.log").read_text()


def test_lists_the_classes_of_kafkas_test_jars() -> None:
    assert "org.apache.kafka.tools.TopicCommandTest" in cluster_test_classes(VERSION)


def test_a_class_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KafkaProcessError, match=r"NoSuchTest: no results; .* exit code \d+\n(.*\n)*.*NoSuchTest"):
        run_cluster_tests(["org.apache.kafka.NoSuchTest"], tmp_path, version=VERSION)
