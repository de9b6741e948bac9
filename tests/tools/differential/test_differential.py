"""The comparison finds, shrinks, saves and replays differences, and finds none between equal controllers."""

import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.conformance.known_differences import known_differences
from mockraft.conformance.requests import complete
from mockraft.wire.json_form import from_json
from mockraft.wire.records.config_record import ConfigRecord

from tools.differential import pair
from tools.differential.__main__ import main
from tools.differential.comparison import Divergence
from tools.differential.emptying import wait_until_published
from tools.differential.generator import DRAWS, Generator
from tools.differential.known import KNOWN
from tools.differential.model import Model
from tools.differential.mutations import mutated
from tools.differential.names import NamedRecord, Names
from tools.differential.run import fuzz, replay
from tools.differential.side import Side
from tools.differential.steps import FuzzStep, request_class

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


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """Run the command with these arguments; return its exit code."""

    def run(*arguments: str) -> object:
        monkeypatch.setattr(sys, "argv", ["differential", *arguments])
        try:
            main()
        except SystemExit as end:
            return end.code
        return 0

    return run


def test_equal_controllers_do_not_differ(start: Callable[..., str]) -> None:
    with pair.pair_of(start(), start()) as both:
        found = fuzz(both, seed=11, steps=600)
    assert found is None, str(found)


def test_a_difference_is_shrunk_saved_and_replayed(
    start: Callable[..., str], command: Callable[..., object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    addresses = ["--bootstrap", start(), "--against", start(num_partitions=3)]
    saved = tmp_path / "found.jsonl"
    assert command(*addresses, "--seed", "3", "--steps", "3000", "--save", str(saved)) == 1
    found = capsys.readouterr().out
    steps = saved.read_text().splitlines()
    assert found.startswith("CreateTopics differs in answer.topics.")
    assert "numPartitions at step" in found
    assert "\n  first   1\n  second  3\n" in found
    assert found.splitlines()[-len(steps) - 1 :] == [f"{len(steps)} steps show it:", *steps]
    assert len(steps) <= 6
    assert command(*addresses, "--replay", str(saved)) == 1
    assert "CreateTopics differs in answer" in capsys.readouterr().out
    saved.write_text("\n".join(steps[:-1]))
    assert command(*addresses, "--replay", str(saved)) == 0
    assert capsys.readouterr().out == "no difference\n"


async def test_a_controller_that_is_in_use_is_refused(
    command: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        Controller() as used,
        Controller() as new,
        SimulatedBroker.joining(used.bootstrap, used.cluster_id, broker_id=1) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        assert await asyncio.to_thread(command, "--bootstrap", used.bootstrap, "--against", new.bootstrap) == 2
    assert "the first is not new" in capsys.readouterr().err


def test_a_missing_controller_is_reported(command: Callable[..., object], capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--bootstrap", "127.0.0.1:1", "--against", "127.0.0.1:1") == 2
    assert "127.0.0.1:1" in capsys.readouterr().err


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
        again = FuzzStep.from_json(json.loads(str(step)))
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


def test_omitted_requests_are_known_differences() -> None:
    entries = {each.id for each in known_differences()}
    assert {each.entry for each in KNOWN} - {""} <= entries
    assert {api for each in KNOWN for api in each.apis} <= {api for _, api, _ in DRAWS}


LATE = ConfigRecord(resource_type=16, resource_name="m", name="interval.ms", value="100")
SETTING = FuzzStep("IncrementalAlterConfigs", 1, {"resources": [], "validateOnly": False})


def test_a_record_that_comes_after_its_step_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "SETTLE_S", 0.1)
    with Controller.sync() as one, Controller.sync() as other, ExitStack() as stack:
        sides = [stack.enter_context(closing(Side(c.bootstrap, c.bootstrap, c.cluster_id))) for c in (one, other)]

        class Late(pair.Pair):
            def take(self, step: FuzzStep) -> Divergence | None:
                found = super().take(step)
                other.state.append([LATE])
                return found

        assert replay(pair.Pair(*sides), 1, [SETTING]) is None
        found = replay(Late(*sides), 1, [SETTING])
        assert found is not None
        assert (found.difference.api, found.difference.path) == ("image", "configs.(16, 'm')")


def test_another_registration_of_the_controller_itself_is_no_difference(start: Callable[..., str]) -> None:
    listener = {"name": "CONTROLLER", "host": "elsewhere", "port": 9093, "securityProtocol": 0}
    body = {"controllerId": 3000, "incarnationId": "A" * 21 + "g", "listeners": [listener], "zkMigrationReady": False}
    step = FuzzStep("ControllerRegistration", 0, complete("ControllerRegistration", body, 0, drop=True))
    with pair.pair_of(start(), start()) as both:
        found = replay(both, 1, [step, SETTING])
    assert found is None, str(found)


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
