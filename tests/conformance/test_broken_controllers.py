"""A controller that closes, answers garbage or does not answer gets a verdict for each case, or one clear refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mockraft import ApiName, Controller, Stub, conformance, stub
from mockraft.conformance import CannotConnectError, Outcome, target
from mockraft.conformance.case import Case
from mockraft.conformance.suite import all_cases
from mockraft.conformance.world import World
from mockraft.wire.client import KafkaConnection

Breaking = Callable[[Stub], Stub]
BREAKINGS: dict[str, Breaking] = {
    "closes": lambda of: of.disconnect_on(),
    "answers garbage": lambda of: of.raw("00000008 ffffffff ffffffff"),
    "answers another request": lambda of: of.wrong_correlation_id(),
    "answers with other bytes": lambda of: of.corrupt(20, seed=1),
}
breakings = pytest.mark.parametrize("breaking", BREAKINGS.values(), ids=BREAKINGS)


@breakings
@pytest.mark.parametrize("api", ["DescribeQuorum", "DescribeCluster", "Fetch"])
async def test_refuses_a_controller_that_breaks_before_the_first_case(api: ApiName, breaking: Breaking) -> None:
    async with Controller() as controller:
        controller.add(breaking(stub(api)))
        with pytest.raises(CannotConnectError, match=r"does not answer as a Kafka controller|log cannot be read"):
            await conformance.run(controller.bootstrap)


@breakings
@pytest.mark.parametrize("api", ["CreateTopics", "BrokerRegistration"])
async def test_every_case_has_a_verdict_whatever_breaks(api: ApiName, breaking: Breaking) -> None:
    cases = [case for case in all_cases() if case.area == "topic deletion"]
    async with Controller() as controller:
        controller.add(breaking(stub(api)))
        found = await conformance.run(controller.bootstrap, cases=cases)
    assert len(found.verdicts) == len(cases)
    assert len(found.failures) > 8
    assert [each.reason for each in found.failures if "\n" in each.reason or not each.reason] == []


@breakings
async def test_a_log_that_cannot_be_read_for_a_while_fails_the_cases_of_that_time(breaking: Breaking) -> None:
    async with Controller() as controller:

        async def breaks(world: World) -> None:
            controller.add(breaking(stub("Fetch").times(2)))
            await world.records()

        async def reads(world: World) -> None:
            await world.records()

        trials = {"first": breaks, "second": reads, "third": reads}
        cases = [Case(name, "log", "here", trial, alone=True) for name, trial in trials.items()]
        found = await conformance.run(controller.bootstrap, cases=cases)
    assert [each.outcome for each in found.verdicts] == [Outcome.FAILED, Outcome.FAILED, Outcome.PASSED]
    assert all(each.reason.startswith("the metadata log cannot be read: ") for each in found.failures)


async def test_an_api_that_does_not_answer_is_waited_for_in_full_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_LITTLE_PATIENCE_MS", 1)
    send = KafkaConnection.send

    async def impatient(self: Any, request: Any, *, timeout_ms: int | None = None, **options: Any) -> Any:
        return await send(self, request, timeout_ms=min(timeout_ms or 500, 500), **options)

    monkeypatch.setattr(KafkaConnection, "send", impatient)
    cases = [case for case in all_cases() if case.area == "producer ids"]
    async with Controller() as controller:
        controller.add(stub("AllocateProducerIds").drop())
        found = await conformance.run(controller.bootstrap, cases=cases, parallel=1)
    waits = [int(each.reason.split()[-2]) for each in found.failures]
    assert sorted(waits) == [*[1] * (len(cases) - 1), 500]
