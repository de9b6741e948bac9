"""The quorum options of `mockraft serve`: several controllers in one process, or one of several processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mockraft.kafka_api.options import PORT_MAX, OptionError

if TYPE_CHECKING:
    import random
    import socket
    from collections.abc import Mapping

    from mockraft.kafka_api.clock import Clock
    from mockraft.server.config import ControllerConfig
    from mockraft.server.running import RunningController
    from mockraft.server.running_quorum import RunningQuorum
    from mockraft.server.stubs.script import Script


_VOTERS = ("initial_controllers", "controller_quorum_voters", "controller_quorum_bootstrap_servers")


def count(options: Mapping[str, int]) -> int:
    """Return the number of controllers in this process, with and without a vote."""
    return options["controllers"] + options["observers"]


def check(options: Mapping[str, Any]) -> None:
    """Raise OptionError for two options that exclude each other."""
    given = [name for name in _VOTERS if options[name] is not None]
    if given and count(options) > 1:
        option = f"--{given[0].replace('_', '-')}"
        raise OptionError("the controllers of one process are each other's voters", option)
    if options["advertised_port"] is not None and count(options) > 1:
        raise OptionError("several controllers cannot have one port", "--advertised-port")
    if options["port"] + count(options) - 1 > PORT_MAX:
        about = f"there are not so many ports above {options['port']}"
        raise OptionError(about, "--controllers")


def first_data_dir(options: Mapping[str, Any]) -> Path | None:
    """The data directory of the first controller."""
    data_dir: Path | None = options["data_dir"]
    if data_dir is None or count(options) == 1:
        return data_dir
    from mockraft.server.running_quorum import folder

    return folder(data_dir, options["node_id"])


async def start(
    config: ControllerConfig,
    options: Mapping[str, int],
    rng: random.Random,
    script: Script | None = None,
    clock: Clock | None = None,
    listening: socket.socket | None = None,
) -> tuple[RunningController | RunningQuorum, dict[int, RunningController]]:
    """Start the controllers; return what runs and its nodes by id.

    `listening` is the socket of a single controller.

    Raises what RunningController.start and RunningQuorum.start raise.
    """
    if count(options) == 1:
        from mockraft.server.running import RunningController

        running = await RunningController.start(config, clock, rng, listening, script)
        return running, {config.node_id: running}
    from mockraft.server.running_quorum import RunningQuorum

    quorum = await RunningQuorum.start(config, options["controllers"], options["observers"], clock, rng, script)
    return quorum, quorum.nodes


async def until_it_commits(running: RunningController | RunningQuorum) -> None:
    """Wait until the quorum of this process can commit. TimeoutError.

    A leader that was elected before may be one no more: while modules are imported no node gets a response, and
    followers whose fetches time out elect. Only then can a client be told to come. A single controller leads from its
    start, and one of several processes does not wait for the others.
    """
    from mockraft.server.running import RunningController

    if not isinstance(running, RunningController):
        await running.wait_to_commit()
