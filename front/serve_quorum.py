"""The options of `mockraft serve` that make it several controllers, or one of several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from mockraft.server.clock import Clock
    from mockraft.server.config import ControllerConfig
    from mockraft.server.running import RunningController
    from mockraft.server.running_quorum import RunningQuorum
    from mockraft.server.stubs.script import Script

Controllers = Annotated[
    int,
    typer.Option(
        min=1, help="A quorum of so many controllers in one process; node ids and ports go up from the given."
    ),
]
InitialControllers = Annotated[
    str | None,
    typer.Option(
        help="The first voters of a quorum of separate processes, this one too, as kafka-storage format has them: "
        "ID@HOST:PORT:DIRECTORY_ID,…"
    ),
]
QuorumVoters = Annotated[
    str | None,
    typer.Option(help="The voters of such a quorum at kraft.version 0 (controller.quorum.voters): ID@HOST:PORT,…"),
]
QuorumBootstrapServers = Annotated[
    str | None,
    typer.Option(help="Controllers of a quorum that this one follows without a vote, until it is added: HOST:PORT,…"),
]

_PORT_MAX = 65_535

_VOTERS = ("initial_controllers", "controller_quorum_voters", "controller_quorum_bootstrap_servers")


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """What these options make of others. BadParameter for two that do not go together."""
    told = [name for name in _VOTERS if options[name] is not None]
    if told and options["controllers"] > 1:
        option = f"--{told[0].replace('_', '-')}"
        raise typer.BadParameter("the controllers of one process are each other's voters", param_hint=option)
    if options["advertised_port"] is not None and options["controllers"] > 1:
        raise typer.BadParameter("several controllers cannot have one port", param_hint="--advertised-port")
    if options["port"] + options["controllers"] - 1 > _PORT_MAX:
        about = f"there are not so many ports above {options['port']}"
        raise typer.BadParameter(about, param_hint="--controllers")
    return {"kraft_version": 0} if options["controller_quorum_voters"] else {}


def first_data_dir(options: Mapping[str, Any]) -> Path | None:
    """The data directory of the first controller."""
    data_dir: Path | None = options["data_dir"]
    if data_dir is None or options["controllers"] == 1:
        return data_dir
    from mockraft.server.running_quorum import folder

    return folder(data_dir, options["node_id"])


async def start(
    config: ControllerConfig,
    controllers: int,
    chance: random.Random,
    script: Script | None = None,
    clock: Clock | None = None,
) -> tuple[RunningController | RunningQuorum, dict[int, RunningController]]:
    """Start the controllers and give what runs and its nodes by id; several have a leader by then.

    Raises what RunningController.start and RunningQuorum.start raise.
    """
    if controllers == 1:
        from mockraft.server.running import RunningController

        running = await RunningController.start(config, clock, chance, script=script)
        return running, {config.node_id: running}
    from mockraft.server.running_quorum import RunningQuorum

    quorum = await RunningQuorum.start(config, controllers, clock, chance, script)
    await quorum.wait_for_leader()
    return quorum, quorum.nodes
