"""Kafka's own `@ClusterTest` classes with mockraft as the controller, judged by their kept results on Kafka's.

`make test` runs a selection, `make soak` all. docs/evidence/kafkas-own-tests-results.md shows the kept results.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.kafka.cluster_tests import TEST_CLASSES_VERSION, cluster_test_classes, run_cluster_tests

from tools.cluster_test_results import VERSIONS, kept, read, verdicts

from ..budgets import soak

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(1800)]

SELECTED = {  # three minutes
    ("4.3.1", "org.apache.kafka.admin.RemoteTopicCrudTest"),
    ("4.3.1", "org.apache.kafka.server.config.MinInSyncReplicasConfigTest"),
    ("4.4.0", "org.apache.kafka.server.BrokerRegistrationRequestTest"),
    ("4.4.0", "unit.kafka.server.AllocateProducerIdsRequestTest"),
}


def runs() -> Iterator[object]:
    for version in VERSIONS:
        for name in sorted(read(version)["classes"]):
            marks = () if (version, name) in SELECTED else soak
            yield pytest.param(version, name, marks=marks, id=f"{version}-{name.rpartition('.')[2]}")


@pytest.mark.parametrize(("version", "name"), list(runs()))
def test_what_passes_on_kafkas_controller_passes_or_is_bound_to_the_jvm(
    version: str, name: str, tmp_path: Path
) -> None:
    results = run_cluster_tests([name], tmp_path, version=version, timeout_s=1700)
    on_kafka = read(version)["classes"][name].get("kafka", {})
    judged = verdicts(name, {"mockraft": kept(results), "kafka": on_kafka})
    failed = {each.name: each.error for each in results if judged[each.name] in ("fails", "undecided")}
    assert failed == {}


def test_every_class_has_results() -> None:
    names = set(cluster_test_classes(TEST_CLASSES_VERSION))
    assert names == {name for name, found in read(TEST_CLASSES_VERSION)["classes"].items() if found}


def test_no_kept_result_is_a_failure_of_mockraft() -> None:
    judged = [
        (version, name, test, verdict)
        for version in VERSIONS
        for name, controllers in read(version)["classes"].items()
        for test, verdict in verdicts(name, controllers).items()
    ]
    assert [row for row in judged if row[-1] in ("fails", "undecided")] == []
