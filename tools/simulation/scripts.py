"""Events of a simulated cluster as data, and scripts drawn from a seed.

An event ends by itself: a killed process starts again, a cut heals. That makes each removable on its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.server.raft.raft import Raft
from mockraft.wire.messages.add_raft_voter_request import AddRaftVoterRequest
from mockraft.wire.messages.add_raft_voter_request import Listener as VoterListener
from mockraft.wire.messages.remove_raft_voter_request import RemoveRaftVoterRequest

from .network import Storm
from .writes import alter_config, create_topic, ignored, produce, reassign, take_producer_id

if TYPE_CHECKING:
    from .world import World


class Setup(NamedTuple):
    """The cluster of a world. `observers` are controllers without a vote at first."""

    seed: int
    controllers: int = 3
    observers: int = 0
    brokers: int = 3
    log_dirs: int = 1
    min_insync_replicas: int = 2
    static_voters: bool = False
    bootstrap_servers: bool = False
    metadata_version: int = 33
    snapshot_bytes: int = 20_000_000
    lasts_ms: int = 9_000

    @property
    def broker_names(self) -> list[str]:
        """Names of the brokers; broker 1 is b1."""
        return [f"b{number}" for number in range(1, self.brokers + 1)]

    @property
    def controller_names(self) -> list[str]:
        """Names of the controllers."""
        return [f"c{number}" for number in range(1, self.controllers + self.observers + 1)]

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self._fields)
        shown = (f"{name}={value!r}" for name, value in fields if self._field_defaults.get(name) != value)
        return f"Setup({', '.join(shown)})"


class Event(NamedTuple):
    """Something that happens `at_ms` after the start: a name of `ACTIONS` and its arguments."""

    at_ms: int
    action: str
    arguments: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Event({self.at_ms}, {self.action!r}, {self.arguments!r})"


Script = list[Event]


def draw(seed: int) -> tuple[Setup, Script]:
    """Return the cluster and the script of a seed."""
    rng = random.Random(seed)
    has_brokers = rng.random() < 0.75
    controllers = rng.choice((1, 3, 3, 3, 3) if has_brokers else (1, 2, 3, 3, 3, 5))
    setup = Setup(
        seed,
        controllers=controllers,
        observers=0 if has_brokers else 1,
        brokers=3 if has_brokers else 0,
        log_dirs=rng.choice((1, 2)),
        min_insync_replicas=rng.choice((1, 2, 2)),
        static_voters=controllers > 1 and rng.random() < 0.2,
        bootstrap_servers=rng.random() < 0.3,
        metadata_version=rng.choice((22, 29, 30, 33)),
        snapshot_bytes=rng.choice((3_000, 20_000_000)),
    )
    script = []
    if has_brokers:
        script += [Event(2_000 + 300 * number, "create_topic", (f"t{number}", 1 + number % 2)) for number in range(2)]
    for _ in range(rng.randint(6, 16)):
        action, draw_arguments = rng.choice(_FAULTS if has_brokers else _QUORUM_FAULTS)
        script.append(Event(rng.randrange(500, setup.lasts_ms), action, draw_arguments(setup, rng)))
    for number in range(rng.randint(15, 30)):
        action = rng.choice(_WRITES if has_brokers else ("alter_config",))
        arguments = _WRITE_ARGUMENTS[action](number, rng)
        script.append(Event(rng.randrange(2_500 if has_brokers else 500, setup.lasts_ms), action, arguments))
    return setup, sorted(script, key=lambda event: event.at_ms)


# Faults.


def kill(world: World, name: str, down_ms: int) -> None:
    """Kill a process, and start it again after a while."""
    world.processes[name].kill()
    world.later(down_ms, world.processes[name].start)


def lose_power(world: World, name: str, down_ms: int, keep: float) -> None:
    """Kill a broker; what it had not forced to its disks is lost, unless that could be the only copy of a record."""
    process = world.brokers[name]
    process.kill()

    def start() -> None:
        number = process.config.broker_id
        registered = world.image.cluster.brokers.get(number)
        is_fenced = registered is not None and registered.fenced
        counted = any(number in (*each.isr, *each.elr, *each.last_known_elr) for each in world.partitions().values())
        if not process.is_up and is_fenced and not counted:
            for disk in process.disks.values():
                disk.lose_tails(keep)
        process.start()

    world.later(down_ms, start)


def cut_power(world: World, names: tuple[str, ...], down_ms: int, keep: float, zeros: bool) -> None:
    """Kill controllers at the same time.

    With a data directory they lose bytes that they had not synced, and half of the names.
    """
    rng = random.Random(keep)
    for name in names:
        process = world.controllers[name]
        process.kill()
        if process.config.data_dir is not None:
            world.page_cache.lose(process.config.data_dir, keep, zeros=zeros, survives=lambda: rng.random() < 0.5)
        world.later(down_ms, process.start)


def shut_down(world: World, name: str, down_ms: int) -> None:
    """Shut a broker down in an orderly way; kill it if that takes longer than it is to be down."""
    process = world.brokers[name]
    if process.is_up:
        process.shut_down()

    def start() -> None:
        process.kill()
        process.start()

    world.later(down_ms, start)


def cut(world: World, one: str, other: str, ms: int) -> None:
    """Hold back what one process sends to another."""
    world.network.cut(one, other, ms)


def isolate(world: World, name: str, ms: int) -> None:
    """Cut a process off from all others but the client, in both directions."""
    for other in world.processes:
        if other not in (name, "client"):
            world.network.cut(name, other, ms)
            world.network.cut(other, name, ms)


def storm(world: World, ms: int, seed: int) -> None:
    """Let connections break, delay, damage and repeat what is sent."""
    world.network.storms.append(Storm(world.now_ms + ms, random.Random(seed)))


def pause(world: World, name: str, ms: int) -> None:
    """Stop a process as a long garbage collection does; afterwards all that waited happens."""
    world.processes[name].pause(ms)


def jump_clock(world: World, name: str, ms: int) -> None:
    """Let a clock jump: forward at once, back at the next start only, as clocks of processes never go back."""
    process = world.processes[name]
    if ms < 0:
        process.kill()
    process.skew_ms += ms
    process.start() if ms < 0 else process.settle()


def fail_disk(world: World, name: str, index: int) -> None:
    """Let a log directory of a broker fail until its next start."""
    process = world.brokers[name]
    if process.is_up:
        process.run(process.fail_log_dir, process.config.log_dirs[index].path)


def fill_disk(world: World, name: str, index: int) -> None:
    """Leave no space in a log directory of a broker until its next start."""
    process = world.brokers[name]
    if process.is_up and process.node.directories.is_live(process.config.log_dirs[index].directory_id):
        process.fill_log_dir(process.config.log_dirs[index].path)


def resign(world: World, name: str) -> None:
    """Let a controller resign if it leads."""
    process = world.controllers[name]
    if process.is_up and process.raft.is_leader:
        process.call(Raft.resign)


def elect(world: World, name: str) -> None:
    """Let a controller start an election."""
    process = world.controllers[name]
    if process.is_up and process.raft.is_voter:
        process.call(Raft.elect)


def change_voter(world: World, name: str) -> None:
    """Ask the leaders to add a controller to the voters, or to remove it."""
    process = world.controllers[name]
    key: dict[str, Any] = {"voter_id": process.config.node_id, "voter_directory_id": process.log.directory_id}
    for leader in world.active():
        voters = leader.log.voters.nodes
        if leader is process and len(voters) == 2:
            # Lost on the way, this leaves one without a vote with the longer log, and one that lacks its vote: a hole
            # in KIP-853 that Kafka has too.
            continue
        request: Any = RemoveRaftVoterRequest(cluster_id=None, **key)
        if process.config.node_id not in voters:
            listeners = [VoterListener(name="CONTROLLER", host=name, port=9093)]
            request = AddRaftVoterRequest(cluster_id=None, timeout_ms=1_000, listeners=listeners, **key)
        world.client.request(leader.name, request, 0, ignored)


ACTIONS: dict[str, Callable[..., None]] = {
    action.__name__: action
    for action in (
        *(kill, lose_power, cut_power, shut_down, cut, isolate, storm, pause, jump_clock, fail_disk, fill_disk),
        *(resign, elect, change_voter, create_topic, alter_config, reassign, produce, take_producer_id),
    )
}

_Draw = Callable[[Setup, random.Random], tuple[Any, ...]]


def _broker(setup: Setup, rng: random.Random) -> str:
    return rng.choice(setup.broker_names)


def _controller(setup: Setup, rng: random.Random) -> str:
    return rng.choice(setup.controller_names)


def _power_cut(setup: Setup, rng: random.Random) -> tuple[Any, ...]:
    """Return a power cut of all controllers, or of some."""
    names = setup.controller_names
    some = tuple(names if rng.random() < 0.5 else rng.sample(names, rng.randint(1, len(names))))
    return some, _ms(rng), rng.random(), rng.random() < 0.3


def _ms(rng: random.Random) -> int:
    """Return the length of a fault: often short, sometimes longer than a session."""
    return int(rng.choice((rng.randrange(50, 800), rng.randrange(500, 5_000))))


_QUORUM_FAULTS: list[tuple[str, _Draw]] = [
    ("kill", lambda setup, rng: (_controller(setup, rng), _ms(rng))),
    ("kill", lambda setup, rng: (_controller(setup, rng), _ms(rng))),
    ("cut_power", _power_cut),
    ("isolate", lambda setup, rng: (_controller(setup, rng), _ms(rng))),
    ("cut", lambda setup, rng: (*rng.sample([*setup.controller_names, "client"], 2), _ms(rng))),
    ("storm", lambda setup, rng: (_ms(rng), rng.randrange(1 << 30))),
    ("pause", lambda setup, rng: (_controller(setup, rng), _ms(rng))),
    ("jump_clock", lambda setup, rng: (_controller(setup, rng), rng.choice((-1, 1, 1)) * rng.randrange(20_000))),
    ("resign", lambda setup, rng: (_controller(setup, rng),)),
    ("elect", lambda setup, rng: (_controller(setup, rng),)),
    ("change_voter", lambda setup, rng: (_controller(setup, rng),)),
]
_FAULTS: list[tuple[str, _Draw]] = [
    *(each for each in _QUORUM_FAULTS if each[0] != "change_voter"),
    ("kill", lambda setup, rng: (_broker(setup, rng), _ms(rng))),
    ("kill", lambda setup, rng: (_broker(setup, rng), _ms(rng))),
    ("lose_power", lambda setup, rng: (_broker(setup, rng), _ms(rng), rng.random())),
    ("shut_down", lambda setup, rng: (_broker(setup, rng), 1_000 + _ms(rng))),
    ("isolate", lambda setup, rng: (_broker(setup, rng), _ms(rng))),
    ("cut", lambda setup, rng: (*rng.sample([*setup.broker_names, *setup.controller_names], 2), _ms(rng))),
    ("cut", lambda setup, rng: (*rng.sample(setup.broker_names, 2), _ms(rng))),
    ("storm", lambda setup, rng: (_ms(rng), rng.randrange(1 << 30))),
    ("pause", lambda setup, rng: (_broker(setup, rng), _ms(rng))),
    ("fail_disk", lambda setup, rng: (_broker(setup, rng), rng.randrange(setup.log_dirs))),
    ("fill_disk", lambda setup, rng: (_broker(setup, rng), rng.randrange(setup.log_dirs))),
]
_WRITES = ("produce",) * 8 + ("alter_config", "alter_config", "create_topic", "take_producer_id", "reassign")
_WRITE_ARGUMENTS: dict[str, Callable[[int, random.Random], tuple[Any, ...]]] = {
    "produce": lambda number, rng: (f"t{rng.randrange(2)}", 0, b"r%d" % number, rng.choice((1, 3, 8))),
    "alter_config": lambda number, _: (number,),
    "create_topic": lambda number, _: (f"n{number}", 1),
    "take_producer_id": lambda _, rng: (f"b{rng.randint(1, 3)}",),
    "reassign": lambda _, rng: (f"t{rng.randrange(2)}", tuple(rng.sample((1, 2, 3), rng.randint(2, 3)))),
}
