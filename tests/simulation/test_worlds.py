"""Worlds repeat themselves, differ from each other, and much happens in them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

STEPS = 250
NEVER_ASKED = {"BrokerRegistration", "BrokerHeartbeat", "UnregisterBroker", "AssignReplicasToDirs", "Envelope"}
NOT_DRAWN = {"Fetch", "FetchSnapshot", "SaslAuthenticate"}
RARE = {"DescribeDelegationToken", "DescribeUserScramCredentials", "SaslHandshake"}
OF_THE_QUORUM = {"Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "AddRaftVoter", "UpdateRaftVoter"}


def test_a_world_is_the_same_for_the_same_seed_and_another_for_another(new_world: Any) -> None:
    worlds = [new_world(seed) for seed in (1, 1, 2)]
    for world in worlds:
        for _ in range(100):
            world.step()
    first, again, other = (world.log.read(0, 1 << 40) for world in worlds)
    assert first == again
    assert first != other


HASH_OF_A_WORLD = """
import hashlib, importlib.util, sys
spec = importlib.util.spec_from_file_location("world", sys.argv[1])
module = sys.modules["world"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
world = module.World(9)
for _ in range(200):
    world.step()
print(hashlib.sha256(world.log.read(0, 1 << 40)).hexdigest())
"""


def test_a_world_is_the_same_in_every_process() -> None:
    """Python hashes bytes by another seed in each process: no set's order may show in the log."""
    found = set()
    for hash_seed in ("0", "1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", HASH_OF_A_WORLD, str(Path(__file__).parent / "conftest.py")],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_worlds_are_eventful(new_world: Any) -> None:
    """The truths are only worth something if leaders move, brokers die and partitions lose all their replicas."""
    seen = set()
    for seed in range(8):
        world = new_world(seed)
        for _ in range(STEPS):
            world.step()
            for topic in world.image.topics.by_id.values():
                for partition in topic.partitions.values():
                    seen.add(("leaderless", partition.leader == -1))
                    seen.add(("eligible", bool(partition.elr)))
                    seen.add(("empty isr", not partition.isr))
                    seen.add(("recovering", bool(partition.leader_recovery_state)))
                    seen.add(("moved", partition.leader_epoch > 3))
                    seen.add(("reassigned", partition.is_reassigning))
            for broker in world.image.cluster.brokers.values():
                seen.add(("shutting down", broker.in_controlled_shutdown and not broker.fenced))
                seen.add(("lost a directory", len(broker.log_dirs) < len(world.brokers[broker.broker_id].log_dirs)))
    assert {name for name, value in seen if value} == {name for name, _ in seen}


def test_everything_is_asked(new_world: Any) -> None:
    """Brokers ask for their own lives and read the log; votes are the quorum's simulation."""
    asked = set()
    for seed in range(12):
        world = new_world(seed)
        for _ in range(STEPS):
            world.step()
        asked |= world.asked
    offered = set(world.generator.versions)
    assert offered - NEVER_ASKED - NOT_DRAWN - OF_THE_QUORUM - RARE == asked - RARE
