"""Presets: faults made of stubs that are added and removed, and of commands to the controller. All kinds of faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from mockraft.server.stubs.action import Action
from mockraft.server.stubs.actions import Change, DelayOn
from mockraft.server.stubs.faults.fault import REQUIRED, InForce, Kind, Parameter, Params
from mockraft.server.stubs.faults.toxics import BYTE_KINDS
from mockraft.server.stubs.stub import Stub, stub
from mockraft.wire import error_codes, record_batch

if TYPE_CHECKING:
    from mockraft.server.raft.quorum_state import VoterChange
    from mockraft.server.stubs.faults.fault import FaultTarget
    from mockraft.wire.api_keys import ApiName
    from mockraft.wire.error_codes import ErrorName
    from mockraft.wire.json_form import Json, Tree
    from mockraft.wire.messages.fetch_request import FetchRequest
    from mockraft.wire.messages.fetch_response import FetchResponse


EVERY_BROKER: Final = -1

NODE: Final = Parameter("node_id", "int", REQUIRED, "the controller's node id", minimum=0)
BROKER: Final = Parameter("broker_id", "int", REQUIRED, "the broker's id", minimum=0)
BROKERS: Final = Parameter("broker_id", "int", EVERY_BROKER, "the broker's id; -1 is every broker", minimum=-1)


@dataclass(frozen=True, slots=True)
class Preset(Kind):
    """A kind of fault that is made of stubs and commands.

    `reaction` is what a real broker does, and `proof` the test that shows it, as `file::test` below
    tests/real_kafka/presets.
    """

    reaction: str = ""
    proof: str = ""

    def to_json(self) -> Tree:
        """Return the kind as the live page and the command line list it, with a real broker's reaction."""
        return {**Kind.to_json(self), "reaction": self.reaction}


def scope(params: Params, name: str = "broker_id") -> int | None:
    """Return the condition on the sender: the given broker, or None for every broker."""
    broker_id = params.integer(name)
    return None if broker_id == EVERY_BROKER else broker_id


def fetch_scope(double: FaultTarget, params: Params) -> Json:
    """Return the same condition for requests that nodes of a quorum send too, without theirs."""
    broker_id = scope(params)
    return {"not": sorted(double.nodes())} if broker_id is None else broker_id


def put(double: FaultTarget, *stubs: Stub) -> InForce:
    """Add stubs until they are removed again."""
    stub_list = double.script.stubs
    live = [*map(stub_list.add, stubs)]

    def undo() -> None:
        for each in live:
            # The list may have been emptied meanwhile.
            with suppress(KeyError):
                stub_list.remove(each.id)

    return InForce(undo, lambda: sum(each.call_count for each in live), live)


def answer_waiting(double: FaultTarget) -> None:
    """Answer fetches that wait for records now, before a preset changes their answer."""
    # Without an active controller nothing is written, and nobody waits.
    with suppress(RuntimeError):
        double.state.append([{"type": "NoOpRecord", "record": {}}])


def made_of(stubs: Callable[[Params], Iterable[Stub]]) -> Callable[[FaultTarget, Params], InForce]:
    """Return a preset that consists of stubs."""
    return lambda double, params: put(double, *stubs(params))


def command(do: Callable[[FaultTarget, Params], object]) -> Callable[[FaultTarget, Params], Callable[[], None]]:
    """Return a preset that is a command: it runs when it is switched on, and is not taken back."""

    def on(double: FaultTarget, params: Params) -> Callable[[], None]:
        do(double, params)
        return lambda: None

    return on


def voters_changed(do: Callable[[FaultTarget, Params], VoterChange]) -> Callable[[FaultTarget, Params], InForce]:
    """Return a preset that changes the voters: it fired once the change is committed."""

    def on(double: FaultTarget, params: Params) -> InForce:
        change = do(double, params)

        def refusal() -> str | None:
            code, message = change.result or (error_codes.NONE, None)
            return f"{error_codes.name(code)}: {message}" if code else None

        return InForce(lambda: None, lambda: int(change.result is not None and not refusal()), refusal=refusal)

    return on


_ERROR: Final = "the error's name, as in Kafka's Errors"


def _heartbeat(name: str, **change: Mapping[str, object]) -> Callable[[FaultTarget, Params], InForce]:
    """Return a preset that changes heartbeats: the `request` or the `response`."""
    return made_of(lambda params: [stub("BrokerHeartbeat", broker_id=scope(params)).change(**change).named(name)])


def _refused(name: str, error: ErrorName, *apis: ApiName) -> Callable[[FaultTarget, Params], InForce]:
    return made_of(lambda params: [stub(*apis, broker_id=scope(params)).inject_error(error).named(name)])


def _error(params: Params) -> ErrorName:
    return cast("ErrorName", params.text("error"))


def _registration_never_succeeds(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerRegistration", broker_id=scope(params)).named("registration_never_succeeds")
    yield matching.inject_error(_error(params)) if params.text("error") else matching.drop()


def _lost_heartbeats(params: Params) -> Iterable[Stub]:
    yield stub("BrokerHeartbeat", broker_id=scope(params)).drop().named("lost_heartbeats")


def _unacknowledged_dead_dir(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerHeartbeat", where={"offlineLogDirs[]": {"exists": True}}, broker_id=scope(params))
    yield matching.inject_error(_error(params)).named("unacknowledged_dead_dir")


def _throttle(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerHeartbeat", "BrokerRegistration", broker_id=scope(params)).named("throttle")
    yield matching.change(response={"throttleTimeMs": params["throttle_ms"]})


def _fence(double: FaultTarget, params: Params) -> InForce:
    """Fence now, and keep it so: a running broker asks in every heartbeat to be unfenced."""
    held = put(
        double, stub("BrokerHeartbeat", broker_id=scope(params)).change(request={"wantFence": True}).named("fence")
    )
    fenced = 0
    try:
        double.state.fence(params.integer("broker_id"))
        fenced = 1
    except BaseException as error:
        # Before any broker registers it may still come, and stays fenced then.
        if not isinstance(error, ValueError) or double.state.brokers():
            held.undo()
            raise
    return held._replace(fired=lambda: held.fired() + fenced)


def _fail_log_dir(double: FaultTarget, params: Params) -> Callable[[], None]:
    state, broker_id = double.state, params.integer("broker_id")
    online = [each.id for each in state.broker(broker_id).log_dirs if each.state != "offline"]
    if not online:
        raise ValueError(f"broker {broker_id} has no log directory online")
    wanted = params.text("log_dir") or online[0]
    if online == [wanted]:
        raise ValueError(f"log directory {wanted} is the only one of broker {broker_id}: without any it cannot run")
    state.fail_log_dir(broker_id, wanted)
    epoch = state.broker(broker_id).epoch

    def undo() -> None:
        """A broker reports this itself when it registers; while it runs, a record has to."""
        found = [broker for broker in state.brokers() if broker.broker_id == broker_id and broker.epoch == epoch]
        for broker in found:
            back = [each.id for each in broker.log_dirs if each.state != "offline"]
            change: Tree = {"brokerId": broker_id, "brokerEpoch": epoch, "logDirs": [*back, wanted]}
            state.append([{"type": "BrokerRegistrationChangeRecord", "record": change}])

    return undo


BROKER_PRESETS: Final = (
    Preset(
        "registration_never_succeeds",
        "All registrations are refused.",
        (BROKERS, Parameter("error", "string", "DUPLICATE_BROKER_REGISTRATION", f"{_ERROR}; empty: no answer")),
        made_of(_registration_never_succeeds),
        reaction="Tries again every 2 s until `initial.broker.registration.timeout.ms` (60 s) is over, then logs"
        " `Shutting down because we were unable to register with the controller quorum` and exits 1.",
        proof="test_presets_startup.py::test_broker_whose_registration_never_succeeds_exits",
    ),
    Preset(
        "duplicate_registration",
        "Registrations are refused with DUPLICATE_BROKER_REGISTRATION: as if another process had the id.",
        (BROKERS,),
        _refused("duplicate_registration", "DUPLICATE_BROKER_REGISTRATION", "BrokerRegistration"),
        reaction="Tries again every 2 s, and starts once it is let in.",
        proof="test_presets_startup.py::test_a_broker_that_is_a_duplicate_for_a_while_starts_afterwards",
    ),
    Preset(
        "heartbeat_storm",
        "Heartbeats are answered with `isCaughtUp` false: a starting broker sends the next one after 10 ms.",
        (BROKERS,),
        _heartbeat("heartbeat_storm", response={"isCaughtUp": False}),
        reaction="While it starts, a heartbeat every 10 ms, some 85 a second, and it never gets to RUNNING. A running"
        " broker does not react.",
        proof="test_presets_startup.py::test_a_starting_broker_storms_with_heartbeats_while_it_is_not_caught_up",
    ),
    Preset(
        "never_caught_up",
        "The controller regards no broker as caught up: the metadata offsets in heartbeats are ignored.",
        (BROKERS,),
        _heartbeat("never_caught_up", request={"currentMetadataOffset": -1}),
        reaction="While it starts, as `heartbeat_storm`. A running one goes on; once fenced it stays fenced, and"
        " others' controlled shutdowns wait for it.",
        proof="test_presets_startup.py::test_a_broker_that_never_catches_up_stays_fenced",
    ),
    Preset(
        "lost_heartbeats",
        "Heartbeats are read, and neither counted nor answered, as by a controller that is busy.",
        (BROKERS,),
        made_of(_lost_heartbeats),
        reaction="Logs `Disconnecting from node 3000 due to request timeout` after twice its heartbeat interval and"
        " sends the next one. When its session has ended it is fenced, stays up and does not register again; the first"
        " heartbeat that is answered unfences it.",
        proof="test_presets.py::test_lost_heartbeats_fence_a_broker_until_one_is_answered",
    ),
    Preset(
        "stale_broker_epoch",
        "Answers STALE_BROKER_EPOCH to requests with a broker epoch; the broker's session times out.",
        (BROKERS,),
        _refused(
            "stale_broker_epoch",
            "STALE_BROKER_EPOCH",
            "BrokerHeartbeat",
            "AlterPartition",
            "AssignReplicasToDirs",
            "AllocateProducerIds",
        ),
        reaction="Logs `sent a heartbeat request but received error STALE_BROKER_EPOCH` every 2 s. It never registers"
        " again by itself and goes on serving with the metadata it has.",
        proof="test_presets.py::test_broker_with_a_stale_epoch_continues_without_registering_again",
    ),
    Preset(
        "expire_session",
        "A broker's session ends: it is fenced, and unfenced by its next heartbeat.",
        (BROKER,),
        command(lambda double, params: double.state.expire_session(params.integer("broker_id"))),
        reaction="Does not react; its next heartbeat, within 2 s, unfences it.",
        proof="test_presets.py::test_an_expired_session_lasts_until_the_brokers_next_heartbeat",
    ),
    Preset(
        "fence",
        "A broker is fenced and stays fenced: its heartbeats are read as if they requested it.",
        (BROKER,),
        _fence,
        reaction="Stays up and sends its heartbeats; it is missing in clients' metadata, and partitions that only"
        " it can lead have no leader.",
        proof="test_presets.py::test_a_fenced_broker_stays_up_and_clients_do_not_see_it",
    ),
    Preset(
        "unfence",
        "A broker is unfenced, whether it requested it or not.",
        (BROKER,),
        command(lambda double, params: double.state.unfence(params.integer("broker_id"))),
        reaction="Does not react; clients see it again at once.",
        proof="test_presets.py::test_an_unfenced_broker_is_seen_by_clients_again",
    ),
    Preset(
        "should_shut_down",
        "Heartbeats are answered with `shouldShutDown`.",
        (BROKERS,),
        _heartbeat("should_shut_down", response={"shouldShutDown": True}),
        reaction="A running one does not react. One that is stopping (SIGTERM) exits at once, without waiting"
        " for its leaders to move.",
        proof="test_presets_shutdown.py::test_a_running_broker_takes_no_notice_of_should_shut_down",
    ),
    Preset(
        "shutdown_never_granted",
        "No controlled shutdown completes: heartbeats are never answered with `shouldShutDown`.",
        (BROKERS,),
        _heartbeat("shutdown_never_granted", response={"shouldShutDown": False}),
        reaction="One that is stopping (SIGTERM) logs `still waiting for the active controller` every 2 s and"
        " goes on waiting, for 5 minutes at the most.",
        proof="test_presets_shutdown.py::test_broker_without_permission_to_shut_down_waits",
    ),
    Preset(
        "fail_log_dir",
        "A log directory is offline as if its broker had reported it; switched off, it is online again.",
        (BROKER, Parameter("log_dir", "string", "", "the directory's id; empty: the first that is online")),
        _fail_log_dir,
        reaction="Goes on using the directory; the partitions it led there are led by others.",
        proof="test_presets.py::test_a_log_dir_that_fails_for_the_controller_alone_moves_its_leaders",
    ),
    Preset(
        "unacknowledged_dead_dir",
        "Heartbeats that report a failed log directory are answered with an error.",
        (BROKERS, Parameter("error", "string", "UNKNOWN_SERVER_ERROR", _ERROR)),
        made_of(_unacknowledged_dead_dir),
        reaction="Reports it again every 2 s until `log.dir.failure.timeout.ms` (30 s) is over, then logs `Shutting"
        " down because couldn't communicate offline log dir` and asks for a controlled shutdown, in heartbeats that are"
        " refused as well: it ends when one is answered.",
        proof="test_presets_shutdown.py::test_broker_that_cannot_report_a_failed_dir_shuts_down",
    ),
    Preset(
        "throttle",
        "Registrations and heartbeats are answered with a throttle time, which clients respect.",
        (BROKERS, Parameter("throttle_ms", "int", 3_000, "milliseconds", minimum=0, grows=True)),
        made_of(_throttle),
        reaction="Sends nothing on that connection for that time: its heartbeats come every 2 s plus that time.",
        proof="test_presets.py::test_a_throttled_broker_sends_its_heartbeats_later",
    ),
)


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


ACTIVE_ONLY: Final = (
    "AllocateProducerIds",
    "AlterPartition",
    "AssignReplicasToDirs",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "CreateTopics",
    "Envelope",
)
"""APIs that brokers send to the active controller only."""


def _not_controller(params: Params) -> Iterable[Stub]:
    yield stub(*ACTIVE_ONLY, broker_id=scope(params)).inject_error("NOT_CONTROLLER").named("not_controller")


QUORUM_PRESETS: Final = (
    Preset(
        "not_controller",
        "Answers NOT_CONTROLLER to all requests for the active controller; the metadata log goes on.",
        (BROKERS,),
        made_of(_not_controller),
        reaction="Drops the connection and retries on a new one, up to 15 times a second; it stays RUNNING and"
        " serves with the metadata it has. Clients' requests that it forwards are sent again every 50 ms until they"
        " time out.",
        proof="test_presets.py::test_not_controller_makes_a_broker_connect_again_and_again",
    ),
    Preset(
        "resign",
        "The active controller resigns; in a quorum another one is elected, a single one leads again after 1.5 s.",
        (),
        command(lambda double, params: double.state.resign()),
        reaction="Follows the next leader as soon as it learns the new epoch and keeps its own broker epoch; it does"
        " not register again.",
        proof="test_presets.py::test_a_broker_follows_a_controller_that_resigned_into_the_next_epoch",
    ),
    Preset(
        "elect",
        "A failover: a node of the quorum becomes a candidate now, and leads once a majority votes for it.",
        (NODE,),
        command(lambda double, params: double.state.elect_controller(params.integer("node_id"))),
        reaction="Fetches from the new leader within a second and sends its heartbeats there; it keeps its broker epoch"
        " and does not register again.",
        proof="test_presets_quorum.py::test_a_failover_moves_a_brokers_fetches_and_heartbeats_to_the_new_leader",
    ),
    Preset(
        "restart",
        "The controller stops as if it were killed, and restarts at once on the same port with the same log.",
        (Parameter("node_id", "int", EVERY_BROKER, "the node of a quorum; -1 is the only controller", minimum=-1),),
        command(lambda double, params: double.restart_in_place(scope(params, "node_id"))),
        reaction="Connects again within a second, keeps its broker epoch and does not register again.",
        proof="test_presets.py::test_a_broker_outlives_a_restart_of_the_controller_without_registering_again",
    ),
    Preset(
        "add_voter",
        "A node of the quorum, an observer, is added to the voters, as `kafka-metadata-quorum add-controller` does.",
        (NODE, Parameter("port", "int", 0, "port of its endpoint in the request; 0 is its own", minimum=0)),
        voters_changed(
            lambda double, params: double.state.add_voter(params.integer("node_id"), params.integer("port") or None)
        ),
        reaction="Does not react: it fetches from the leader as before.",
        proof="test_presets_quorum.py::test_a_broker_follows_a_quorum_whose_voters_are_others",
    ),
    Preset(
        "remove_voter",
        "A voter is removed, whatever its directory id is, as `kafka-metadata-quorum remove-controller` does; a leader"
        " resigns.",
        (NODE,),
        voters_changed(lambda double, params: double.state.remove_voter(params.integer("node_id"))),
        reaction="Follows the next leader if the leader was removed; it does not register again.",
        proof="test_presets_quorum.py::test_a_broker_follows_a_quorum_whose_voters_are_others",
    ),
    Preset(
        "lose_disk",
        "A node of the quorum restarts with an empty data directory and a new directory id: an observer, until its"
        " old directory id is removed and it is added.",
        (NODE,),
        command(lambda double, params: double.lose_disk(params.integer("node_id"))),
        reaction="Follows the next leader if the leader lost its disk; it does not register again.",
        proof="test_presets_quorum.py::test_a_broker_follows_a_quorum_whose_voters_are_others",
    ),
    Preset(
        "inconsistent_cluster_id",
        "Answers INCONSISTENT_CLUSTER_ID to fetches of the metadata log and to registrations.",
        (BROKERS,),
        lambda double, params: put(
            double,
            stub("Fetch", "BrokerRegistration", broker_id=fetch_scope(double, params))
            .inject_error("INCONSISTENT_CLUSTER_ID")
            .named("inconsistent_cluster_id"),
        ),
        reaction="Logs `Unexpected error INCONSISTENT_CLUSTER_ID in FETCH response` and fetches again, some 40 times a"
        " second; it does not exit, and its metadata does not change.",
        proof="test_presets.py::test_another_clusters_id_makes_a_broker_fetch_again_and_again",
    ),
)


PRESET_KINDS: tuple[Preset, ...] = (*QUORUM_PRESETS, *BROKER_PRESETS, *LOG_PRESETS)
"""Presets: named misbehaviours of a controller, each with a real broker's reaction, as in the documentation."""
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*BYTE_KINDS, *PRESET_KINDS)}
"""All kinds by name."""
