"""Presets about the metadata log: it stalls, stops, diverges from the broker's, lacks its snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mockraft.server.stubs.action import Action
from mockraft.server.stubs.actions import Change, DelayOn
from mockraft.server.stubs.faults.fault import InForce, Parameter, Params
from mockraft.server.stubs.faults.preset import BROKERS, Preset, answer_waiting, fetch_scope, put
from mockraft.server.stubs.stub import stub
from mockraft.wire import record_batch

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.target import FaultTarget
    from mockraft.wire.messages.fetch_request import FetchRequest
    from mockraft.wire.messages.fetch_response import FetchResponse

FROZEN_ANSWER_MS: Final = 500
"""Wait time of a fetch at the end of a frozen log, equal to that of a fetch that finds nothing."""


def _stall(double: FaultTarget, params: Params) -> InForce:
    answer_waiting(double)
    matching = stub("Fetch", "FetchSnapshot", broker_id=fetch_scope(double, params))
    return put(double, matching.drop().named("stall_metadata_fetch"))


def _freeze(double: FaultTarget, params: Params) -> InForce:
    answer_waiting(double)
    frozen_at = double.state.quorum().high_watermark

    def answer(request: FetchRequest) -> list[Action]:
        """Keep what a broker has already: its high watermark must not go back."""
        fetch_offset = request.topics[0].partitions[0].fetch_offset
        cut = Change(response=_ends_at(max(frozen_at, fetch_offset)))
        return [cut, DelayOn(FROZEN_ANSWER_MS)] if fetch_offset >= frozen_at else [cut]

    matching = stub("Fetch", where={"topics[].partitions[].partition": 0}, broker_id=fetch_scope(double, params))
    return put(double, matching.answers(answer).named("freeze_metadata_log"))


def _ends_at(end_offset: int) -> Callable[[FetchResponse], None]:
    """Remove newer records from an answer."""

    def cut(response: FetchResponse) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                records = partition.records or b""
                kept = [header.end for header in record_batch.read_headers(records) if header.last_offset < end_offset]
                partition.records = records[: kept[-1]] if kept else b""
                partition.high_watermark = min(partition.high_watermark, end_offset)

    return cut


def _diverge(double: FaultTarget, params: Params) -> InForce:
    records = params.integer("records")

    def change(response: FetchResponse) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.error_code == 0 and partition.high_watermark > 0:
                    partition.diverging_epoch.epoch = partition.current_leader.leader_epoch
                    partition.diverging_epoch.end_offset = max(0, partition.high_watermark - records)
                    partition.records = b""

    return put(double, stub("Fetch", broker_id=fetch_scope(double, params)).change(response=change).named("diverge"))


def _snapshot_not_found(double: FaultTarget, params: Params) -> InForce:
    if not double.state.snapshots():
        double.state.snapshot()
    gone = {"topics[].partitions[].errorCode": "SNAPSHOT_NOT_FOUND", "topics[].partitions[].unalignedRecords": ""}
    matching = stub("FetchSnapshot", broker_id=fetch_scope(double, params))
    return put(double, matching.change(response=gone).named("snapshot_not_found"))


LOG_PRESETS: Final = (
    Preset(
        "stall_metadata_fetch",
        "Fetches of the metadata log, and of its snapshots, are never answered.",
        (BROKERS,),
        _stall,
        reaction="After 2 s `Disconnecting from node 3000 due to request timeout`, then it tries again; it stays"
        " RUNNING and serves, its heartbeats go on, and its metadata does not change.",
        proof="test_presets.py::test_broker_with_stalled_fetches_serves_old_metadata",
    ),
    Preset(
        "freeze_metadata_log",
        ("Brokers see the metadata log as it is when this is switched on: fetches are answered without newer records."),
        (BROKERS,),
        _freeze,
        reaction="Stays RUNNING and notices nothing: what the controller committed meanwhile (such as a topic) is not"
        " there for clients. It catches up when this is switched off. One that starts meanwhile never reads its own"
        " registration: a heartbeat storm.",
        proof="test_presets.py::test_frozen_metadata_log_hides_a_new_topic_until_released",
    ),
    Preset(
        "diverge",
        "Fetches are answered with a diverging epoch, some records below the high watermark.",
        (
            BROKERS,
            Parameter("records", "int", 1, "number of committed records to be truncated by the broker", minimum=0),
        ),
        _diverge,
        reaction="Logs `The leader requested truncation to offset …, which is below the current high watermark` and"
        " exits 1.",
        proof="test_presets_shutdown.py::test_a_divergence_below_the_high_watermark_ends_a_broker",
    ),
    Preset(
        "snapshot_not_found",
        "FetchSnapshot is answered with SNAPSHOT_NOT_FOUND; a snapshot is written first if there is none.",
        (BROKERS,),
        _snapshot_not_found,
        reaction="One that starts without the log goes back to fetching and is sent to the snapshot again, endlessly;"
        " it does not register meanwhile.",
        proof="test_presets_startup.py::test_a_new_broker_does_not_start_without_the_snapshot",
    ),
)
