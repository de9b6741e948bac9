"""`mockraft cluster-tests` and `run_cluster_tests`: Kafka's own integration tests with mockraft as the controller."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.cluster_tests import run_cluster_tests
from mockraft.kafka.jars import java

from ..cli.cli import completed

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(900)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster-test"


def test_one_method_runs_on_mockraft(tmp_path: Path) -> None:
    method = "org.apache.kafka.server.BrokerRegistrationRequestTest#shouldRejectRegistrationWithoutFeatureLevels"
    lines: list[str] = []
    results = run_cluster_tests([method], tmp_path, version="4.3.1", controller="mockraft", progress=lines.append)
    assert [line.rpartition(" :: ")[2] for line in lines] == ["SUCCESSFUL"]
    assert [result.outcome for result in results] == ["passed"]
    assert "mockraft.serve: stopping" in (tmp_path / "mockraft.log").read_text()


def test_a_class_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KafkaProcessError, match=r"NoSuchTest: no results; .* exit code \d+\n(.*\n)*.*NoSuchTest"):
        run_cluster_tests(["org.apache.kafka.NoSuchTest"], tmp_path, version="4.3.1")


def test_the_command_lists_the_classes_of_kafkas_test_jars() -> None:
    assert "org.apache.kafka.tools.TopicCommandTest" in completed("cluster-tests").stdout.splitlines()


def test_a_test_of_ones_own_passes_with_the_faults_of_its_stubs_alone(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    class_path = completed("cluster-tests", "--print-class-path").stdout.strip()
    compiler = Path(java()).resolve().with_name("javac")
    subprocess.run([compiler, "-cp", class_path, "-d", "classes", "RefusedTopicTest.java"], check=True, cwd=tmp_path)
    command = ("cluster-tests", "--class-path", "classes", "RefusedTopicTest")
    passed = completed(*command, cwd=tmp_path)
    assert (passed.returncode, passed.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed, 0 skipped"), passed
    failed = completed(*command, "--controller", "kafka", cwd=tmp_path)
    assert (failed.returncode, failed.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed, 0 skipped"), failed
    assert "Expected java.util.concurrent.ExecutionException to be thrown" in failed.stdout


def test_the_command_refuses_another_controller() -> None:
    refused = completed("cluster-tests", "ATest", "--controller", "zookeeper")
    assert (refused.returncode, "it is mockraft or kafka" in refused.stderr) == (2, True)
