"""The comparison finds, shrinks, saves and replays differences, and finds none between equal controllers."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.conformance.known_differences import known_differences
from mockraft.wire.records.config_record import ConfigRecord

from tools.differential import pair
from tools.differential.__main__ import main
from tools.differential.comparison import Divergence
from tools.differential.generator import DRAWS
from tools.differential.known import KNOWN
from tools.differential.run import fuzz, replay
from tools.differential.side import Side
from tools.differential.steps import FuzzStep

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
