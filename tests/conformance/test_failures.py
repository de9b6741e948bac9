"""A controller with a fault fails exactly the cases about it; one that answers nothing is refused clearly."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mockraft import ApiName, Controller, Stub, conformance, stub
from mockraft.conformance import CannotConnectError, Outcome, target
from mockraft.conformance.case import Case
from mockraft.conformance.expectation import expect
from mockraft.conformance.records import record
from mockraft.conformance.reports.html_report import write_html
from mockraft.conformance.reports.junit import write_junit
from mockraft.conformance.suite import all_cases
from mockraft.conformance.world import World
from mockraft.wire.client import KafkaConnection


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    async with Controller() as controller:
        yield controller


async def verdict_of(controller: Controller, trial: object, **kind: object) -> conformance.Verdict:
    case = Case("mine", "topics", "here", trial, **kind)  # type: ignore[arg-type]
    (verdict,) = (await conformance.run(controller.bootstrap, cases=[case])).verdicts
    return verdict


async def test_a_failure_has_request_expectation_and_response(controller: Controller) -> None:
    async def trial(world: World) -> None:
        await world.register(clusterId="another")

    verdict = await verdict_of(controller, trial)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.reason == "the answer to BrokerRegistration: errorCode should be 0, is 104"
    assert (verdict.detail["path"], verdict.detail["expected"]) == ("errorCode", {"errorCode": 0})
    assert verdict.detail["story"][-1]["request"]["clusterId"] == "another"


@pytest.mark.parametrize("records", [(), (record("Topic"),), (record("RegisterBroker"), record("Topic"))])
async def test_records_too_many_or_too_few_or_others_fail(controller: Controller, records: tuple[object, ...]) -> None:
    async def trial(world: World) -> None:
        await world.register()
        await world.wrote(*records)  # type: ignore[arg-type]

    verdict = await verdict_of(controller, trial)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.reason.startswith("the records: ")


async def test_a_record_in_another_version_fails(controller: Controller) -> None:
    async def trial(world: World) -> None:
        world.level = 29
        await world.register()
        await world.wrote(record("RegisterBroker"))

    assert "version should be 3, is 4" in (await verdict_of(controller, trial)).reason


async def test_a_case_that_breaks_fails_and_still_cleans_up(controller: Controller) -> None:
    async def trial(world: World) -> None:
        await world.topic([await world.broker()])
        raise KeyError("odd")

    verdict = await verdict_of(controller, trial)
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, "KeyError: 'odd'")
    image = controller.running.controller.image
    assert (len(image.cluster.brokers), len(image.topics.by_name)) == (0, 0)


async def test_inapplicable_cases_have_a_reason(controller: Controller) -> None:
    async def trial(world: World) -> None:
        await world.send("CreateTopics", {}, version=99)

    verdict = await verdict_of(controller, trial)
    assert (verdict.outcome, verdict.reason) == (
        Outcome.NOT_APPLICABLE,
        "the controller offers CreateTopics 2-7, not 99",
    )
    assert (await verdict_of(controller, trial, until=29)).reason == "holds up to 29; metadata.version is 33"


@pytest.mark.parametrize("show_secrets", [False, True])
async def test_verdicts_show_secrets_only_on_request(show_secrets: bool, tmp_path: Path) -> None:
    """An answer that leaks what Kafka's controller would not, and a request with a secret."""
    key = {"name": "ssl.key.password", "value": "hunter2"}
    resource = {"resourceType": 4, "resourceName": "", "configs": [{**key, "configOperation": 0}]}

    async def config(world: World) -> None:
        await world.send("IncrementalAlterConfigs", {"resources": [resource]})
        expect("the answer", {"configs": [{**key, "value": None}]}, {"configs": [key]})

    async def token(world: World) -> None:
        expect("the answer", {"tokens": []}, {"tokens": [{"hmac": "aHVudGVyMg=="}]})

    async with Controller() as controller:
        cases = [Case(trial.__name__, "topics", "here", trial) for trial in (config, token)]
        run = await conformance.run(controller.bootstrap, cases=cases, show_secrets=show_secrets)
    assert [each.outcome for each in run.verdicts] == [Outcome.FAILED, Outcome.FAILED]
    assert run.verdicts[0].reason.startswith("the answer: configs[0].value should be ")
    run.write_json(tmp_path / "run.json")
    write_junit(run, tmp_path / "run.xml")
    write_html(run, tmp_path / "run.html")
    for path in tmp_path.iterdir():
        text = path.read_text()
        assert ("hunter2" in text, "aHVudGVyMg" in text) == (show_secrets, show_secrets), path.name
        assert show_secrets or "[hidden]" in text


BEFORE_4_3 = 2
"""Cases of those below that hold before Kafka 4.3 only."""


async def test_other_brokers_leave_cases_out_that_they_would_fail() -> None:
    """As the controller's own broker does, if it has both roles."""
    async with Controller() as controller:

        async def stays(world: World) -> None:
            await world.broker()
            world._undo.clear()

        await verdict_of(controller, stays)
        cases = [case for case in all_cases() if case.area == "placement" or case.without_brokers]
        found = await conformance.run(controller.bootstrap, cases=cases)
    left_out = [each for each in found.verdicts if each.reason.startswith("the controller has brokers of its own")]
    assert {each.outcome for each in left_out} == {Outcome.NOT_APPLICABLE}
    assert len(left_out) == len(found.verdicts) - BEFORE_4_3
    assert found.failures == []


async def test_disruptive_cases_pass_when_they_are_chosen(controller: Controller) -> None:
    cases = [case for case in all_cases() if case.disruptive]
    assert len(cases) > 4
    found = await conformance.run(controller.bootstrap, cases=cases)
    assert [(each.name, each.reason) for each in found.failures] == []


async def test_reports_an_unreachable_controller() -> None:
    with pytest.raises(CannotConnectError, match="Is a controller listening there"):
        await conformance.run("127.0.0.1:1")
    with pytest.raises(ValueError, match="'nowhere' is not host:port"):
        await conformance.run("nowhere")


async def test_reports_a_listener_that_requires_sasl() -> None:
    async with Controller(security_protocol="SASL_PLAINTEXT", sasl_enabled_mechanisms=("PLAIN",)) as controller:
        with pytest.raises(CannotConnectError, match="is it TLS or SASL there"):
            await conformance.run(controller.bootstrap)


@pytest.mark.parametrize("level", [30, 14])
async def test_the_cluster_id_is_learnt_at_any_level(level: int) -> None:
    async with Controller(metadata_version=level) as controller:
        found = await conformance.run(f"127.0.0.1:1,{controller.bootstrap}", cases=[])
        assert found.cluster_id == controller.cluster_id
        assert found.metadata_version == level


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
