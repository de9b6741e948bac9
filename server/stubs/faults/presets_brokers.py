"""Presets about one broker's life cycle: registration, heartbeats, fencing, shutdown, disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mockraft.server.stubs.faults.fault import InForce, Parameter, Params
from mockraft.server.stubs.faults.preset import BROKER, BROKERS, Preset, command, made_of, put, scope
from mockraft.server.stubs.stub import Stub, stub

if TYPE_CHECKING:
    from mockraft.server.stubs.faults.target import FaultTarget
    from mockraft.wire.json_form import Tree

_ERROR: Final = "the error's name, as in Kafka's Errors"


def _heartbeat(name: str, **change: Mapping[str, object]) -> Callable[[FaultTarget, Params], InForce]:
    """Return a preset that changes heartbeats: the `request` or the `response`."""
    return made_of(lambda params: [stub("BrokerHeartbeat", broker_id=scope(params)).change(**change).named(name)])


def _refused(name: str, error: str, *apis: str) -> Callable[[FaultTarget, Params], InForce]:
    return made_of(lambda params: [stub(*apis, broker_id=scope(params)).inject_error(error).named(name)])


def _registration_never_succeeds(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerRegistration", broker_id=scope(params)).named("registration_never_succeeds")
    yield matching.inject_error(params.text("error")) if params.text("error") else matching.drop()


def _lost_heartbeats(params: Params) -> Iterable[Stub]:
    yield stub("BrokerHeartbeat", broker_id=scope(params)).drop().named("lost_heartbeats")


def _unacknowledged_dead_dir(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerHeartbeat", where={"offlineLogDirs[]": {"exists": True}}, broker_id=scope(params))
    yield matching.inject_error(params.text("error")).named("unacknowledged_dead_dir")


def _throttle(params: Params) -> Iterable[Stub]:
    matching = stub("BrokerHeartbeat", "BrokerRegistration", broker_id=scope(params)).named("throttle")
    yield matching.change(response={"throttleTimeMs": params["throttle_ms"]})


def _fence(double: FaultTarget, params: Params) -> InForce:
    """Fence now, and keep it so: a running broker asks in every heartbeat to be unfenced."""
    held = put(
        double, stub("BrokerHeartbeat", broker_id=scope(params)).change(request={"wantFence": True}).named("fence")
    )
    # Not registered yet: it stays fenced when it is.
    try:
        with suppress(ValueError):
            double.state.fence(params.integer("broker_id"))
    except BaseException:
        held.undo()
        raise
    return InForce(held.undo, lambda: held.fired() + 1)


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
