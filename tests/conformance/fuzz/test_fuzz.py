"""The fuzz finds and shrinks differences, and finds none between equal controllers."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.conformance.fuzz import differential, run
from mockraft.conformance.fuzz.comparison import Divergence
from mockraft.conformance.fuzz.emptying import wait_until_published
from mockraft.conformance.fuzz.generator import DRAWS, Generator
from mockraft.conformance.fuzz.known import KNOWN
from mockraft.conformance.fuzz.model import Model
from mockraft.conformance.fuzz.mutations import mutated
from mockraft.conformance.fuzz.names import NamedRecord, Names
from mockraft.conformance.fuzz.side import Side
from mockraft.conformance.fuzz.steps import FuzzStep, request_class
from mockraft.conformance.known_differences import known_differences
from mockraft.conformance.requests import complete, request
from mockraft.releases import release
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json
from mockraft.wire.records.config_record import ConfigRecord

from ...rows import each_row

SESSION_TIMEOUT_MS = 3_600_000


@pytest.fixture
def start() -> Iterator[Callable[..., str]]:
    """Start a mockraft with these options; return its bootstrap address."""
    with ExitStack() as stack:
        yield (
            lambda **options: (
                stack.enter_context(
                    Controller.sync(session_timeout_ms=SESSION_TIMEOUT_MS, delegation_token_secret_key="key", **options)
                ).bootstrap
            )
        )


def test_equal_controllers_do_not_differ(start: Callable[..., str]) -> None:
    result: list[int] = []
    report = differential.run(start(), start(), seed=11, steps=600, on_steps=result.append)
    assert report.finding is None, differential.text_of(report.finding)
    assert (report.steps, result[-1]) == (600, 600)


def test_a_difference_is_shrunk_and_reproducible(start: Callable[..., str]) -> None:
    one, other = start(), start(num_partitions=3)
    finding = differential.run(one, other, seed=3, steps=3000).finding
    assert finding is not None
    assert finding.difference.api == "CreateTopics"
    assert finding.difference.path.endswith("numPartitions")
    assert len(finding.steps) <= 6
    text = differential.text_of(finding)
    assert text.startswith(f"CreateTopics differs in {finding.difference.path}\n")
    again = differential.steps_of("\n".join(differential.lines_of(finding.steps)))
    assert [step.to_json() for step in again] == [step.to_json() for step in finding.steps]


def test_saved_steps_can_be_replayed(start: Callable[..., str]) -> None:
    one, other = start(), start(num_partitions=3)
    topic = {"name": "t", "numPartitions": -1, "replicationFactor": -1, "assignments": []}
    features = [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in release().feature_ranges().items()
    ]
    listener = {"name": "P", "host": "h", "port": 1, "securityProtocol": 0}
    register = {"brokerId": 1, "clusterId": "$cluster", "incarnationId": "A" * 21 + "g", "listeners": [listener]}
    register |= {"features": features, "logDirs": ["$dir:1:1"]}
    heartbeat = {"brokerId": 1, "brokerEpoch": "$epoch:1", "currentMetadataOffset": "$end"}
    bodies: list[tuple[str, int, dict[str, Any]]] = [
        ("BrokerRegistration", 4, register),
        ("BrokerHeartbeat", 2, heartbeat),
        ("CreateTopics", 7, {"topics": [topic]}),
    ]
    steps = [FuzzStep(api, version, complete(api, body, version, drop=True)) for api, version, body in bodies]
    finding = differential.run_again(one, other, steps).finding
    assert finding is not None
    assert (finding.step, finding.difference.path) == (3, "answer.topics.0.numPartitions")
    assert (finding.difference.ours, finding.difference.theirs) == (1, 3)


async def test_a_controller_that_is_in_use_is_refused() -> None:
    async with (
        Controller() as used,
        Controller() as new,
        SimulatedBroker.joining(used.bootstrap, used.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        with pytest.raises(ValueError, match="not new"):
            await asyncio.to_thread(differential.run, used.bootstrap, new.bootstrap)


def test_every_request_that_is_drawn_can_be_written() -> None:
    versions = {
        "CreateTopics": (2, 7),
        "DeleteTopics": (1, 6),
        "BrokerRegistration": (0, 4),
        "AlterClientQuotas": (0, 1),
    }
    generator = Generator(5, Model(), versions, {"metadata.version": (7, 30)})
    drawn = [generator.step() for _ in range(300)]
    for step in drawn:
        again = FuzzStep.from_json(json.loads(json.dumps(step.to_json())))
        assert again == step
    assert {step.api for step in drawn} == set(versions)
    assert {step.version for step in drawn if step.api == "CreateTopics"} == {2, 3, 4, 5, 6, 7}


def test_mutated_requests_can_be_written() -> None:
    rng = random.Random(1)
    body = complete(
        "AlterClientQuotas",
        {"entries": [{"entity": [{"entityType": "user", "entityName": "ann"}],
                      "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}]},
        1,
        drop=True,
    )  # fmt: skip
    changed = 0
    for _ in range(500):
        wrong = mutated("AlterClientQuotas", 1, body, rng)
        changed += wrong != body
        from_json(request_class("AlterClientQuotas"), wrong, 1).write(1)
    assert changed > 450


@each_row("text", ["{}", "[]", '{"api": "CreateTopics"}', "no json"])
def test_refuses_malformed_steps(text: str) -> None:
    with pytest.raises(ValueError, match=r"no step|Expecting"):
        differential.steps_of(text)


def test_field_of_no_version_is_refused() -> None:
    with pytest.raises(WireError, match="nonsense"):
        request("CreateTopics", {"nonsense": 1}, 7)
    with pytest.raises(WireError, match="nonsense"):
        from_json(request_class("CreateTopics"), complete("CreateTopics", {"nonsense": 1}, 7, drop=True), 7)
    with pytest.raises(WireError):
        from_json(request_class("CreateTopics"), {}, 7)


def test_omitted_requests_are_known_differences() -> None:
    entries = {each.id for each in known_differences()}
    assert {each.entry for each in KNOWN} - {""} <= entries
    assert {api for each in KNOWN for api in each.apis} <= {api for _, api, _ in DRAWS}


LATE = ConfigRecord(resource_type=16, resource_name="m", name="interval.ms", value="100")
SETTING = FuzzStep("IncrementalAlterConfigs", 1, {"resources": [], "validateOnly": False})


def test_a_record_that_comes_after_its_step_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SETTLE_S", 0.1)
    with Controller.sync() as one, Controller.sync() as other, ExitStack() as stack:
        sides = [stack.enter_context(closing(Side(c.bootstrap, c.bootstrap, c.cluster_id))) for c in (one, other)]

        class Late(run.Pair):
            def take(self, step: FuzzStep) -> Divergence | None:
                found = super().take(step)
                other.state.append([LATE])
                return found

        assert run.replay(run.Pair(*sides), 1, [SETTING]) is None
        found = run.replay(Late(*sides), 1, [SETTING])
        assert found is not None
        assert (found[1].api, found[1].path) == ("image", "configs.(16, 'm')")


def test_another_registration_of_the_controller_itself_is_no_difference(start: Callable[..., str]) -> None:
    listener = {"name": "CONTROLLER", "host": "elsewhere", "port": 9093, "securityProtocol": 0}
    body = {"controllerId": 3000, "incarnationId": "A" * 21 + "g", "listeners": [listener], "zkMigrationReady": False}
    step = FuzzStep("ControllerRegistration", 0, complete("ControllerRegistration", body, 0, drop=True))
    report = differential.run_again(start(), start(), [step, SETTING])
    assert report.finding is None, differential.text_of(report.finding)


@each_row("kind", ["DelegationTokenRecord", "RemoveAccessControlEntryRecord"])
def test_waits_until_tokens_and_acls_are_published(kind: str) -> None:
    class Lagging(Names):
        """A side that finds its token, and no longer finds its ACL, when it is asked for the third time."""

        asked = 0

        def answer(self, step: FuzzStep) -> dict[str, Any]:
            self.asked += 1
            is_published = self.asked > 2
            return {"errorCode": 65 if is_published else 62, "resources": [] if is_published else [{"acls": [1]}]}

    side: Any = Lagging("cluster")
    side.hmacs.append("hmac")
    side.model.tokens.add("token")
    wait_until_published(side, [NamedRecord(kind, 0, {})])
    assert side.asked == 3
    wait_until_published(side, [NamedRecord("ConfigRecord", 0, {})])
    assert side.asked == 3
