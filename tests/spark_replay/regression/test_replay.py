"""Captures of mockraft replayed to another mockraft: translated ids, waiting, and changed responses."""

from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.child_process import free_port
from mockraft.server.stubs.stub import stub
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.diff import CHANGED, Difference
from mockraft.spark_replay.regression.replay import Options, Replayed, replay
from mockraft.spark_replay.regression.send_order import PACED, Step, steps, survey
from mockraft.spark_replay.regression.summary import NO_ANSWER, report
from mockraft.wire import api_keys
from mockraft.wire.client import DisconnectedError, connect
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData

CAPTURES = Path(__file__).parents[2] / "captures"


async def on(controller: Controller, exchanges: list[Captured], **options: Any) -> Replayed:
    return await replay(exchanges, controller.host, controller.port, Options(**options))


async def test_a_new_controller_with_other_ids_and_offsets_gives_the_same_answers(exchanges: list[Captured]) -> None:
    async with Controller(seed=77, node_id=3000) as controller:
        # What comes first here moves every offset and epoch.
        client = await connect(controller.host, controller.port)
        for user in "abc":
            entity = EntityData(entity_type="user", entity_name=user)
            entry = EntryData(entity=[entity], ops=[OpData(key="producer_byte_rate", value=1000.0)])
            assert (await client.send(AlterClientQuotasRequest(entries=[entry]))).entries[0].error_code == 0
        await client.close()
        replayed = await on(controller, exchanges)
    found = report(replayed)
    assert found.findings == []
    assert found.sent == found.same > 10
    for kind in ("topic id", "broker epoch", "cluster id", "port"):
        ((captured, live),) = replayed.renaming.pairs[kind].items()
        assert captured != live


async def test_reports_changed_field_with_path_and_both_values(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        lie = stub("BrokerHeartbeat", want_fence=False).once().change(response={"isFenced": True})
        controller.running.node.script.stubs.add(lie)
        replayed = await on(controller, exchanges)
    (finding,) = report(replayed).findings
    assert (finding.api, finding.path, finding.captured, finding.live) == ("BrokerHeartbeat", "isFenced", False, True)
    assert finding.occurrences == 1
    (outcome,) = (each for each in replayed.outcomes if not each.is_same)
    assert list(outcome.differences) == [Difference("isFenced", CHANGED, False, True)]
    assert outcome.captured.number == finding.examples[0]


async def test_a_field_that_is_ignored_is_no_difference(exchanges: list[Captured]) -> None:
    for ignored in ("isFenced", "BrokerHeartbeat:isFenced"):
        async with Controller() as controller:
            lie = stub("BrokerHeartbeat").change(response={"isFenced": True})
            controller.running.node.script.stubs.add(lie)
            assert report(await on(controller, exchanges, ignored=[ignored])).findings == []


async def test_reports_missing_response_and_continues(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        controller.running.node.script.stubs.add(stub("CreateTopics").disconnect_on())
        found = report(await on(controller, exchanges))
    gone = next(each for each in found.findings if each.path == NO_ANSWER)
    assert (gone.api, gone.occurrences) == ("CreateTopics", 1)
    assert found.sent > found.same > 10


async def test_only_filtered_requests_are_sent(exchanges: list[Captured]) -> None:
    async with Controller() as controller:
        replayed = await on(controller, exchanges, kept=Filter.parse(["ApiVersions"]))
    assert {each.api for each in replayed.outcomes} == {"ApiVersions"}
    assert ("BrokerRegistration", "--filter") in replayed.left_out


async def test_paced_requests_are_never_early(exchanges: list[Captured]) -> None:
    first = [each for each in exchanges if each.api_key != api_keys.FETCH][:6]
    async with Controller() as controller:
        replayed = await on(controller, first, order=PACED, speed=1000.0)
        arrived = [each.received_ms for each in controller.journal.exchanges()]
    assert report(replayed).findings == []
    assert arrived == sorted(arrived)


async def test_unreachable_address_is_an_error(exchanges: list[Captured]) -> None:
    with pytest.raises(DisconnectedError, match="cannot connect"):
        await replay(exchanges, "127.0.0.1", free_port())


def test_steps_follow_capture_order_and_broker_absences() -> None:
    captured = read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093})
    known = survey(captured)
    to_send = [step for step in steps(captured, known) if isinstance(step, Step)]
    assert len(to_send) == 858
    sent_ns = [step.captured.request_ts_ns for step in to_send]
    assert sent_ns == sorted(sent_ns)
    assert (known.node_id, known.exchanges) == (3000, 866)
    # Two brokers were away one after the other, and one of them again: each time ten seconds are enough.
    paces = [step.paced for step in to_send if step.paced is not None]
    assert len({start_ns for start_ns, _ in paces}) == 3
    assert max(passed_ns for _, passed_ns in paces) == 10_000_000_000
    assert sum(step.is_last for step in to_send) <= len({step.captured.connection for step in to_send})


async def test_a_real_controllers_capture_has_the_same_answers() -> None:
    """Exchanges before a broker's absence, which would need waiting (see docs/capture-and-replay.md)."""
    exchanges = read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093})[:450]
    async with Controller() as controller:
        found = report(await on(controller, exchanges))
    assert found.findings == []
    assert found.same == found.sent > 430
