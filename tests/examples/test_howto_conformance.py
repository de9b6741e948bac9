"""Examples for docs/conformance.md: run the suite from a test, and write a case."""

from pathlib import Path

from mockraft import Controller, conformance
from mockraft.conformance.case import Case
from mockraft.conformance.junit import write_junit
from mockraft.conformance.suite import all_cases
from mockraft.conformance.world import World
from mockraft.wire import error_codes


async def test_runs_the_cases_of_one_area(tmp_path: Path) -> None:
    async with Controller() as controller:
        topics = [case for case in all_cases() if case.area == "topics"]
        found = await conformance.run(controller.bootstrap, cases=topics)
        assert [(verdict.name, verdict.reason) for verdict in found.failures] == []
        write_junit(found, tmp_path / "conformance.xml")
    assert found.count()[conformance.Outcome.PASSED] > 40


async def test_runs_a_custom_case() -> None:
    async def topic_twice(world: World) -> None:
        broker = await world.broker()
        topic = await world.topic([broker])
        message = f"Topic '{topic.name}' already exists."
        refused = {"errorCode": error_codes.TOPIC_ALREADY_EXISTS, "errorMessage": message}
        request = {"topics": [world.creatable("t", [broker])], "timeoutMs": 10_000}
        await world.send("CreateTopics", request, answer={"topics": [refused]})
        await world.wrote()

    own = [Case("a topic is created once", "my cases", "my own rules", topic_twice)]
    async with Controller() as controller:
        found = await conformance.run(controller.bootstrap, cases=own)
    assert [verdict.outcome for verdict in found.verdicts] == [conformance.Outcome.PASSED]
