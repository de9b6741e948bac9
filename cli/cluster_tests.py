"""`mockraft cluster-tests`: Kafka's `@ClusterTest` classes, or one's own, with mockraft as the controller."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.refusals import end
from mockraft.kafka.child_process import KafkaProcessError
from mockraft.kafka.cluster_tests import (
    TEST_CLASSES_VERSION,
    cluster_test_classes,
    cluster_test_jars,
    controller_classes,
    run_cluster_tests,
)
from mockraft.kafka.jars import KafkaUnavailableError
from mockraft.kafka_api.options import OptionError, argument, option

if TYPE_CHECKING:
    from mockraft.kafka.cluster_tests import ClusterTestResult

ABOUT = """Run Kafka's @ClusterTest classes, or yours, on mockraft.

Prints a line for each test at the end, and on stderr JUnit's line as soon as the test has ended. The JVM runs in the
current folder; a property mockraft.stubs=stubs.json of a test is the option --stubs stubs.json of its controller. Java
17 (a JDK) and Maven are needed.

  mockraft cluster-tests org.apache.kafka.tools.TopicCommandTest
  mockraft cluster-tests org.apache.kafka.tools.TopicCommandTest#testCreate --controller kafka
  mockraft cluster-tests --class-path classes org.example.MyTest
  javac -cp "$(mockraft cluster-tests --print-class-path)" -d classes MyTest.java
  mockraft cluster-tests                             list the classes of Kafka's test jars

""" + exit_codes(ExitCode.MISSING, done="no test failed", failed="a test failed, or did not end")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft cluster-tests`."""

    tests: list[str] | None = argument(None, metavar="CLASS[#METHOD]…", help="Default: list the classes.")
    kafka_version: str = option(TEST_CLASSES_VERSION, help="The Kafka version of brokers, clients and test harness.")
    controller: str = option("mockraft", metavar="mockraft|kafka", help="Whose controller the tests run on.")
    class_path: list[Path] | None = option(
        None, help="Folder or jar with classes that are not Kafka's; may be repeated."
    )
    logs: Path | None = option(None, help="Folder for junit.log, mockraft.log and JUnit's reports. Default: not kept.")
    print_class_path: bool = option(
        False, help="Print the class path, whose first entry puts mockraft in Kafka's place."
    )
    timeout_s: float = option(900, lowest=1, help="End the JVM after so many seconds.")


def cluster_tests(options: Options) -> None:
    """Run the tests, or list classes."""
    if options.controller not in ("mockraft", "kafka"):
        raise OptionError("it is mockraft or kafka", "--controller")
    try:
        jars = cluster_test_jars(options.kafka_version, lambda line: print(line, file=sys.stderr))
        if options.print_class_path:
            print(f"{controller_classes(options.kafka_version)}{os.pathsep}{jars / '*'}")
            return
        if not options.tests:
            print("\n".join(cluster_test_classes(options.kafka_version)))
            return
        with tempfile.TemporaryDirectory(prefix="mockraft-") as folder:
            results = _run(options, options.tests, (options.logs or Path(folder)).absolute())
    except KafkaUnavailableError as error:
        end("cluster-tests", error, ExitCode.MISSING)
    except (KafkaProcessError, TimeoutError) as error:
        end("cluster-tests", error, ExitCode.FAILED)
    for each in results:
        print(f"{each.outcome:<7}  {each.seconds:6.1f} s  {each.test_class} {each.name}{_shown(each)}")
    counts = Counter(each.outcome for each in results)
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped")))
    if counts["failed"]:
        raise SystemExit(ExitCode.FAILED)


def _run(options: Options, tests: list[str], folder: Path) -> list[ClusterTestResult]:
    print(f"running {', '.join(tests)}; JUnit prints to {folder / 'junit.log'}", file=sys.stderr)
    return run_cluster_tests(
        tests,
        folder,
        version=options.kafka_version,
        controller="kafka" if options.controller == "kafka" else "mockraft",
        class_path=[path.absolute() for path in options.class_path or ()],
        working_directory=Path.cwd(),
        timeout_s=options.timeout_s,
        progress=lambda line: print(line, file=sys.stderr),
    )


def _shown(result: ClusterTestResult) -> str:
    """Return the first line of what a test failed or was skipped with."""
    lines = result.error.strip().splitlines()
    return f": {lines[0]}" if lines else ""


COMMANDS = {"cluster-tests": Command("cluster-tests", cluster_tests, ABOUT)}
