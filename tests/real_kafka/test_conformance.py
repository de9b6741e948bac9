"""The conformance cases on Kafka's controller and on ours at each level; vendored specs, archives, proposals.

A case that Kafka's controller fails is a wrong case.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.conformance import Run, baseline, run
from mockraft.conformance.verdicts import partings
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.kafka.processes import KafkaBroker
from mockraft.kafka.release_tables import sync
from mockraft.kafka.tools import java_command
from mockraft.releases import NEWEST, SUPPORTED

from tools.on_kafka import TOKEN_KEY, run_on_kafka
from tools.pages.conformance_table import LEVELS, NEWEST_LEVEL, as_markdown, runs_on_kafka, runs_on_mockraft
from tools.pages.marked_text import marked
from tools.sync.__main__ import main

from ..budgets import SOAKS, soak
from .running import running

pytestmark = pytest.mark.real_kafka

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "checks" / "conformance.md"


IN_TEST = (NEWEST_LEVEL, 7)
"""The levels of `make test`: the newest and the oldest."""
RUN_LEVELS = [level if level in IN_TEST else pytest.param(level, marks=soak) for level in LEVELS]
AT_ONCE = 2


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Run]:
    folder = tmp_path_factory.mktemp("kafka")
    if SOAKS:
        return runs_on_kafka(folder)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda level: run_on_kafka(folder / str(level), LEVELS[level]), IN_TEST)
        return dict(zip(IN_TEST, found, strict=True))


@pytest.fixture(scope="module")
def mockraft() -> dict[int, Run]:
    if SOAKS:
        return asyncio.run(runs_on_mockraft())

    async def at(level: int) -> Run:
        async with Controller(metadata_version=level, delegation_token_secret_key=TOKEN_KEY) as controller:
            return await run(controller.bootstrap)

    async def all_levels() -> list[Run]:
        return await asyncio.gather(*map(at, IN_TEST))

    return dict(zip(IN_TEST, asyncio.run(all_levels()), strict=True))


@pytest.mark.parametrize("level", RUN_LEVELS)
def test_kafkas_own_controller_passes_every_case(kafka: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in kafka[level].failures] == []


@pytest.mark.parametrize("level", RUN_LEVELS)
def test_mockraft_passes_every_case(mockraft: dict[int, Run], level: int) -> None:
    assert [(each.name, each.reason) for each in mockraft[level].failures] == []


@pytest.mark.parametrize("version", [pytest.param(each, marks=() if each == NEWEST else soak) for each in SUPPORTED])
def test_baseline_equals_a_run(tmp_path: Path, version: str) -> None:
    """`python -m tools.baselines` makes all of them anew."""
    found = run_on_kafka(tmp_path / "controller", version=version)
    assert [each.reason for each in found.failures] == []
    assert partings(found, baseline.read(f"kafka-{version}")) == []


@soak
def test_table_in_the_document_equals_these_runs(mockraft: dict[int, Run], kafka: dict[int, Run]) -> None:
    """`make pages ARGS=conformance` writes it anew."""
    assert marked(DOCUMENT.read_text()) == as_markdown(mockraft, kafka)


@pytest.mark.parametrize("version", [KAFKA_VERSION, "4.1.1", "3.9.1"])
def test_a_tool_takes_kafkas_classes_from_the_archive(version: str) -> None:
    command = java_command(version, (), "kafka.tools.StorageTool", "random-uuid")
    command[command.index("-Xlog:disable")] = "-Xlog:class+load"
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    classes = [line for line in printed.splitlines() if "org.apache.kafka." in line]
    archived = [line for line in classes if "shared objects file" in line]
    assert len(archived) > 0.8 * len(classes) > 0


SCHEMAS = Path(__file__).parents[2] / "schemas_json"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in {".json", ".toml"}
    }


@pytest.mark.parametrize("version", [pytest.param(each, marks=() if each == NEWEST else soak) for each in SUPPORTED])
def test_release_in_the_tree_equals_kafkas_jars(tmp_path: Path, version: str) -> None:
    """`make sync X=VERSION` writes it anew."""
    copy = tmp_path / "schemas_json"
    shutil.copytree(SCHEMAS, copy, ignore=shutil.ignore_patterns(version, "proposals"))
    assert files(sync(version, copy)) == files(SCHEMAS / version)


def test_a_release_that_maven_does_not_have_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["0.0.0", "--into", str(tmp_path)]) == 1
    assert "Kafka 0.0.0's jars are not available" in capfd.readouterr().err


KIP_9999 = Path(__file__).parents[2] / "examples" / "kip-9999"


def test_real_broker_runs_on_a_controller_that_serves_a_proposal(tmp_path: Path) -> None:
    with (
        Controller.sync(schemas=KIP_9999) as controller,
        running(KafkaBroker(1, tmp_path / "broker-1", controller.cluster_id, controller.bootstrap)),
    ):
        assert not controller.call(lambda: controller.running.controller.image.cluster.brokers[1].fenced)
