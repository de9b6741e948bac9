"""The options of `mockraft serve` that name what a test prepared: a file of stubs, and a saved state."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mockraft.server.stubs.script import Script
    from mockraft.server.stubs.stub_file import StubFile

_log = logging.getLogger("mockraft.serve")

Stubs = Annotated[
    Path | None, typer.Option(help="File of stubs, faults and a plan that begin at once, as JSON or YAML.")
]
InitialState = Annotated[
    Path | None,
    typer.Option(
        help="A saved state, or a snapshot (.checkpoint) of Kafka's metadata log, that a new log begins with."
    ),
]


def cluster_id_in(initial_state: Path | None) -> str | None:
    """The cluster's id in a saved state, None where it tells none. BadParameter where it is no state."""
    if initial_state is None:
        return None
    from mockraft.server.controller.state_file import read_state

    try:
        return read_state(initial_state).cluster_id or None
    except OSError as error:
        raise typer.BadParameter(f"{initial_state}: {error.strerror}", param_hint="--initial-state") from error
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--initial-state") from error


def stub_file(path: Path | None) -> StubFile | None:
    """What the file says. BadParameter says where it is wrong."""
    if path is None:
        return None
    from mockraft.server.stubs.stub_file import StubFileError, read_stub_file

    try:
        return read_stub_file(path)
    except StubFileError as error:
        raise typer.BadParameter(str(error), param_hint="--stubs") from error


def load(script: Script, file: StubFile, path: Path) -> None:
    """Put what the file says in the way. BadParameter says what of it cannot be."""
    try:
        script.load(file)
    except ValueError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--stubs") from error
    plan = ", a plan" if file.plan else ""
    _log.info("%s: %d stubs, %d faults%s", path, len(file.stubs), len(file.faults), plan)


def tell_unused(script: Script) -> None:
    """Say in the log which stubs never served, lest a test is taken for one that it is not."""
    for each in script.rack.unused():
        _log.warning("stub %s%s never served", each.id, f" ({each.name})" if each.name else "")
