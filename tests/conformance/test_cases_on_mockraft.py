"""Every case passes on mockraft; a second run is not affected by the first."""

from mockraft import Controller, conformance
from mockraft.conformance.suite import all_cases

from ..budgets import soak

NO_SESSION_ENDS_MS = 600_000
SESSION_TIMEOUT_MS = 6_000


@soak
async def test_all_cases_pass_twice_and_clean_up() -> None:
    cases = [case for case in all_cases() if case.area != "sessions" and not case.disruptive]
    async with Controller(session_timeout_ms=NO_SESSION_ENDS_MS, delegation_token_secret_key="a key") as controller:
        for _ in range(2):
            found = await conformance.run(controller.bootstrap, cases=cases)
            assert [(each.name, each.reason) for each in found.failures] == []
            assert found.cluster_id == controller.cluster_id
        image = controller.running.controller.image
        assert (dict(image.cluster.brokers), dict(image.topics.by_name)) == ({}, {})


async def test_silent_brokers_lose_their_sessions() -> None:
    cases = [case for case in all_cases() if case.area == "sessions"]
    async with Controller(session_timeout_ms=SESSION_TIMEOUT_MS) as controller:
        found = await conformance.run(controller.bootstrap, cases=cases)
    assert [(each.name, each.reason) for each in found.failures] == []
    assert len(found.verdicts) >= 4
