"""The catalogue of client suites: where each comes from, the cluster that it expects, and how it runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mockraft.kafka.jars import KAFKA_VERSION

from .clusters import ClientCluster, Shape
from .outcomes import CaseOutcome, above, of_go_tests, of_pytest
from .sources import GoModule, Sdist, go

Outcomes = dict[str, CaseOutcome]
Environment = Callable[[ClientCluster], Mapping[str, str]]


class Suite(Protocol):
    """Tests of a client that run against a cluster of that shape.

    `excluded` names tests that are not run, and why. The outcome of `races` depends on time, also on Kafka's own
    controller.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def excluded(self) -> Mapping[str, str]: ...

    @property
    def races(self) -> Mapping[str, str]: ...

    def fetch(self) -> None:
        """Fetch and build what is not in the cache."""

    def run(self, cluster: ClientCluster, folder: Path, tests: Sequence[str] = ()) -> Outcomes:
        """Run these tests, or all, and return how each ended; `folder` gets the report and what was printed."""


@dataclass(frozen=True)
class GoSuite:
    """Test functions of a Go package whose text matches `uses_cluster`; the others need no broker."""

    name: str
    module: GoModule
    package: str
    environment: Environment
    shape: Shape = field(default_factory=Shape)
    uses_cluster: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)
    races: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[ClientCluster], Mapping[str, str]] = lambda cluster: {}
    timeout_s: int = 900

    @property
    def version(self) -> str:
        return self.module.version

    def fetch(self) -> None:
        self.module.tests(self.package)

    def functions(self) -> list[str]:
        """Return the names of the test functions that count, from the package's sources."""
        found = []
        package = self.module.fetch() / self.package
        for file in sorted(package.glob("*_test.go")):
            for function in re.split(r"^func ", file.read_text(), flags=re.MULTILINE)[1:]:
                name = re.match(r"(Test\w*)\(", function)
                if name and re.search(self.uses_cluster, function):
                    found.append(name[1])
        return [name for name in found if name not in self.excluded]

    def run(self, cluster: ClientCluster, folder: Path, tests: Sequence[str] = ()) -> Outcomes:
        """Run the program of the package's tests; again for those that did not run because a panic ended it."""
        wanted = list(tests) or self.functions()
        outcomes: Outcomes = {}
        for attempt in range(3):
            outcomes |= self._run(cluster, folder / f"attempt-{attempt}", wanted)
            ended = {prefix for name in outcomes for prefix in (name, *above(name))}
            wanted = [name for name in wanted if name not in ended]
            if not wanted:
                break
        return outcomes | {name: CaseOutcome("failed", "did not end") for name in wanted}

    def _run(self, cluster: ClientCluster, folder: Path, tests: Sequence[str]) -> Outcomes:
        environment = {**os.environ, **self.environment(cluster)}
        package = self.module.fetch() / self.package
        working = folder / "package"
        working.mkdir(parents=True)
        for entry in package.iterdir():
            (working / entry.name).symlink_to(entry)
        for name, text in self.files(cluster).items():
            (working / name).write_text(text)
        program = self.module.tests(self.package)
        options = ["-test.v=test2json", f"-test.timeout={self.timeout_s}s", f"-test.run={_pattern(tests)}"]
        if self.excluded:
            options.append(f"-test.skip={_pattern(list(self.excluded))}")
        command = [go(), "tool", "test2json", "-t", str(program), *options]
        report = folder / "report.json"
        with report.open("wb") as output, (folder / "stderr.log").open("wb") as errors:
            subprocess.run(
                command, cwd=working, env=environment, stdout=output, stderr=errors, timeout=self.timeout_s + 60
            )
        return of_go_tests(report.read_text().splitlines())


def _pattern(tests: Sequence[str]) -> str:
    """Return the expression that selects these tests and subtests in Go's way: one for each level, by slashes."""
    return "|".join("/".join(f"^{re.escape(part)}$" for part in name.split("/")) for name in tests)


@dataclass(frozen=True)
class PytestSuite:
    """Tests in a folder of a source distribution."""

    name: str
    source: Sdist
    tests: str
    environment: Environment
    shape: Shape = field(default_factory=Shape)
    excluded: Mapping[str, str] = field(default_factory=dict)
    races: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 900

    @property
    def version(self) -> str:
        return self.source.version

    def fetch(self) -> None:
        self.source.fetch()

    def run(self, cluster: ClientCluster, folder: Path, tests: Sequence[str] = ()) -> Outcomes:
        folder.mkdir(parents=True)
        report = folder / "report.xml"
        command = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "-p", "no:cacheprovider", "-q"]
        command += ["--override-ini=addopts=", "--override-ini=log_level=INFO", "--override-ini=junit_logging=no"]
        command += ["--timeout=100", f"--junitxml={report}", *(f"--ignore={name}" for name in self.excluded)]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **self.environment(cluster)}
        environment.pop("PYTEST_ADDOPTS", None)
        with (folder / "pytest.log").open("wb") as log:
            subprocess.run(
                [*command, *(tests or [self.tests])],
                cwd=self.source.fetch(),
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=self.timeout_s,
            )
        return of_pytest(report.read_text())


_READS_TOO_SOON = "changes something and reads it from a broker at once, which may not have received the change yet"
_KAFKA_PYTHON_SERVICE = '''
"""Stands for the upstream module of the same name, which the source distribution lacks; for a broker that runs."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def dump_logs(self):
        pass


class SpawnedService:
    pass
'''

SUITES: Sequence[Suite] = (
    GoSuite(
        "franz-go",
        GoModule("github.com/twmb/franz-go", "v1.22.3", "h1:RHe35s34pKefMLyL+ZYJ6mQVtfFZz4zHDHVkTyACur0="),
        "pkg/kgo",
        lambda cluster: {
            "KGO_SEEDS": cluster.bootstrap_servers,
            "KGO_TEST_RECORDS": "20000",
            "KGO_TEST_STABLE_FETCH": "true",
            "KGO_TEST_SCRAM": "testuser:testpass",
            "KGO_TEST_SCRAM_SEEDS": cluster.sasl_servers,
            "KGO_TEST_OAUTH_SEEDS": cluster.sasl_servers,
        },
        uses_cluster=r"newTestClient|adm\(\)|tmpTopic|getSeedBrokers|testClientOpts|(scram|oauth)Seeds",
    ),
    PytestSuite(
        "kafka-python",
        Sdist(
            "kafka-python",
            "3.0.12",
            "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65",
            added={"test/__init__.py": "", "test/service.py": _KAFKA_PYTHON_SERVICE},
        ),
        "test/integration",
        lambda cluster: {
            "KAFKA_VERSION": KAFKA_VERSION,
            "KAFKA_URI": f"kafka://{cluster.brokers[1].bootstrap}",
            # Its fixtures want a folder, which tests with a running broker do not read.
            "KAFKA_ROOT": str(cluster.brokers[1].directory),
        },
        # As its own fixtures configure a broker.
        shape=Shape(brokers=1, first_id=0, properties={"group.min.session.timeout.ms": "500", "num.partitions": "4"}),
        excluded={
            f"test/integration/test_{kind}_integration.py": "starts its own broker from a distribution of Kafka"
            for kind in ("sasl", "ssl")
        },
        races={"test/integration/test_admin_integration.py::test_create_describe_delete_acls": _READS_TOO_SOON},
    ),
    GoSuite(
        "kafka-go",
        GoModule("github.com/segmentio/kafka-go", "v0.4.51", "h1:JgDPPG75tC1rWIS2Me6MwcvXJ6f49UQ4HjAOef71Hno="),
        ".",
        lambda cluster: {"KAFKA_VERSION": KAFKA_VERSION, "KAFKA_SKIP_NETTEST": "1"},
        shape=Shape(brokers=1, ports=(9092,)),
        excluded={"TestReaderConsumerGroup": "panics when a group takes long to form, which ends all tests"},
        races=dict.fromkeys(("TestConn/test_delete_topics", "TestDescribeUserScramCredentials"), _READS_TOO_SOON),
    ),
    GoSuite(
        "confluent-kafka-go",
        GoModule(
            "github.com/confluentinc/confluent-kafka-go/v2",
            "v2.11.1",
            "h1:qGCQznyp2BxyBNyOE+M7O1YS2tI1/Y60O0jQP452zA4=",
        ),
        "kafka",
        lambda cluster: {},
        files=lambda cluster: {
            "testconf.json": json.dumps(
                {
                    "Brokers": cluster.bootstrap_servers,
                    "BrokersSasl": cluster.sasl_servers,
                    "SaslUsername": "testuser",
                    "SaslPassword": "testpass",
                    "SaslMechanism": "PLAIN",
                    "TopicName": "test",
                    "GroupID": "testgroup",
                }
            )
        },
        shape=Shape(brokers=1),
        uses_cluster="testconfRead|createAdminClient|IntegrationTestSuite",
        races={
            f"TestIntegration/{test}": _READS_TOO_SOON
            for test in ("TestAdminACLs", "TestAdminClient_UserScramCredentials", "TestAdminConfig")
        },
    ),
)


def suite(name: str) -> Suite:
    """Return the suite of that name."""
    (found,) = (each for each in SUITES if each.name == name)
    return found
