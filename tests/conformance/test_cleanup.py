"""Cases clean up as far as a controller allows, and judge one that lacks UnregisterBroker and DeleteTopics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mockraft import ApiName, Controller, Stub, conformance, stub
from mockraft.conformance import Outcome, Run, baseline, world
from mockraft.conformance.suite import all_cases
from mockraft.conformance.verdicts import partings

from ..budgets import soak

APIS: tuple[ApiName, ...] = ("UnregisterBroker", "DeleteTopics")
AREAS = {"registration", "heartbeats", "topics", "isr", "features", "cluster"}
LACKED = tuple(f"the controller does not offer {api}" for api in APIS)
Refusing = Callable[[Stub], Stub]


def fails(found: Run) -> list[tuple[str, str]]:
    """The failures whose last request is not of one of the APIs."""
    asked = {each.name: str(each.detail["story"][-1].get("api")).partition(" ")[0] for each in found.failures}
    return [(each.name, each.reason) for each in found.failures if asked[each.name] not in APIS]


async def test_a_controller_without_the_apis_is_judged_on_the_rest() -> None:
    areas = {*AREAS, "placement", "topic deletion"}
    cases = [case for case in all_cases() if case.area in areas and not case.disruptive]
    offered: dict[str, object] = dict.fromkeys(APIS, "off")
    async with Controller(release="4.4", api_versions=offered, delegation_token_secret_key="a key") as controller:
        found = await conformance.run(controller.bootstrap, cases=cases)
        brokers = controller.running.controller.image.cluster.brokers.values()
        assert len(brokers) > 100
        assert [each.broker_id for each in brokers if not each.fenced] == []
    assert [(each.name, each.reason) for each in found.failures] == []
    unlike_kafka = [each.mine for each in partings(found, baseline.read("kafka-4.4.0"))]
    assert {each.outcome for each in unlike_kafka} == {Outcome.NOT_APPLICABLE}
    assert {each.area for each in unlike_kafka if each.reason not in LACKED} == {"placement"}, "it needs no others"


@pytest.mark.parametrize(
    "refusing",
    [lambda of: of.inject_error("POLICY_VIOLATION"), pytest.param(lambda of: of.disconnect_on(), marks=soak)],
    ids=["error", "disconnect"],
)
async def test_a_controller_that_refuses_the_apis_is_judged_on_the_rest(refusing: Refusing) -> None:
    async with Controller(session_timeout_ms=60_000) as refuses:  # No session ends within a case.
        for api in APIS:
            refuses.add(refusing(stub(api)))
        found = await conformance.run(refuses.bootstrap, cases=[case for case in all_cases() if case.area in AREAS])
        brokers = refuses.running.controller.image.cluster.brokers.values()
        assert len(brokers) > 100
        assert [each.broker_id for each in brokers if not each.fenced] == []
    assert found.failures != []
    assert fails(found) == []


async def test_an_api_that_does_not_answer_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "CLEANUP_TIMEOUT_S", 0.2)
    cases = [case for case in all_cases() if case.area in ("producer ids", "elections")]
    async with Controller() as silent:
        dropped = [silent.add(stub(api).drop()) for api in APIS]
        found = await conformance.run(silent.bootstrap, cases=cases, parallel=1)
        assert [each.call_count for each in dropped] == [1, 1]
    assert found.failures == []
