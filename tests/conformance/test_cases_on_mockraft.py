"""Every case passes on mockraft, or is a known difference; and a second run finds nothing of the first."""

from mockraft import Controller, conformance


async def test_all_cases_pass_twice() -> None:
    async with Controller(session_timeout_ms=2500) as controller:
        for _ in range(2):
            found = await conformance.run(controller.bootstrap)
            assert [(each.name, each.reason) for each in found.unexplained] == []
            assert found.cluster_id == controller.cluster_id
        image = controller.running.controller.image
        assert (dict(image.cluster.brokers), dict(image.topics.by_name)) == ({}, {})
