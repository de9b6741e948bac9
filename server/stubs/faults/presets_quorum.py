"""Presets about the active controller: not this node, another node, another cluster's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mockraft.server.stubs.faults.fault import REQUIRED, Parameter, Params
from mockraft.server.stubs.faults.preset import BROKERS, Preset, command, fetch_scope, made_of, put, scope
from mockraft.server.stubs.stub import Stub, stub

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
        (Parameter("node_id", "int", REQUIRED, "the controller's node id", minimum=0),),
        command(lambda double, params: double.state.elect_controller(params.integer("node_id"))),
        reaction="Fetches from the new leader within a second and sends its heartbeats there; it keeps its broker epoch"
        " and does not register again.",
        proof="test_presets_quorum.py::test_a_failover_moves_a_brokers_fetches_and_heartbeats_to_the_new_leader",
    ),
    Preset(
        "restart",
        "The controller stops as if it were killed, and restarts at once on the same port with the same log.",
        (),
        command(lambda double, params: double.restart_in_place()),
        reaction="Connects again within a second, keeps its broker epoch and does not register again.",
        proof="test_presets.py::test_a_broker_outlives_a_restart_of_the_controller_without_registering_again",
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
