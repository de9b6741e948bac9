"""Random steps on Kafka's controller and on mockraft, without a difference: 11,000 in `make soak`."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.testing.options import ControllerOptions

from tools.differential.pair import pair_of
from tools.differential.run import fuzz

from ..budgets import budget, soak
from .running import running

pytestmark = pytest.mark.real_kafka

NEVER_MS = 1_000_000_000
TOKEN_KEY = "key"
OURS: ControllerOptions = {
    "session_timeout_ms": NEVER_MS,
    "heartbeat_interval_ms": NEVER_MS // 2,
    "leader_imbalance_check_interval_seconds": NEVER_MS // 1000,
    "unclean_leader_election_interval_ms": NEVER_MS,
    "delegation_token_secret_key": TOKEN_KEY,
}
KAFKAS = {
    "broker.session.timeout.ms": str(NEVER_MS),
    "broker.heartbeat.interval.ms": str(NEVER_MS // 2),
    "leader.imbalance.check.interval.seconds": str(NEVER_MS // 1000),
    "unclean.leader.election.interval.ms": str(NEVER_MS),
    "delegation.token.secret.key": TOKEN_KEY,
    "controller.quorum.append.linger.ms": "0",
}


AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USER = "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("level", "seed", "steps"),
    [
        ("4.4-IV2", 1, budget(800, 5_000)),
        pytest.param("4.3-IV0", 51, 1_000, marks=soak),
        pytest.param("4.2-IV1", 101, 1_000, marks=soak),
        pytest.param("3.9-IV0", 201, 1_000, marks=soak),
        pytest.param("3.6-IV2", 301, 1_000, marks=soak),
        pytest.param("3.5-IV2", 401, 1_000, marks=soak),
        ("3.3-IV3", 501, budget(300, 1_000)),
    ],
)
def test_no_difference_is_found(tmp_path: Path, level: str, seed: int, steps: int) -> None:
    expect_no_difference(tmp_path, level, seed, steps, {}, {})


def test_no_difference_is_found_with_an_authorizer(tmp_path: Path) -> None:
    kafkas = {"authorizer.class.name": AUTHORIZER, "super.users": SUPER_USER}
    expect_no_difference(tmp_path, "4.4-IV2", 601, budget(300, 1_000), {"super_users": SUPER_USER}, kafkas)


def expect_no_difference(
    directory: Path, level: str, seed: int, steps: int, our_options: ControllerOptions, kafkas: dict[str, str]
) -> None:
    kafka = KafkaController(directory, random_uuid(), release_version=level, properties={**KAFKAS, **kafkas})
    options: ControllerOptions = {**OURS, **our_options, "metadata_version": level, "kraft_version": 1}
    with Controller.sync(**options) as ours, running(kafka), pair_of(ours.bootstrap, kafka.bootstrap) as pair:
        found = fuzz(pair, seed, steps)
    assert found is None, f"{level}: {found}"
