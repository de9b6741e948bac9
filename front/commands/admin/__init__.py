"""Commands that use a running controller's admin API."""

import typer
from mockraft.commands.admin import cluster, control, faults, recordings, requests, stubs


def register(app: typer.Typer) -> None:
    """Add the commands of this package."""
    for commands in (stubs, faults, requests, recordings, cluster, control):
        commands.register(app)
