"""Commands that use a running controller's admin API."""

import typer
from mockraft.cli.admin import cluster, control, faults, recordings, requests, stubs
from mockraft.cli.admin.remote import GROUPS

__all__ = ["cluster", "control", "faults", "recordings", "register", "requests", "stubs"]


def register(app: typer.Typer) -> None:
    """Add the commands of this package."""
    for commands in GROUPS:
        app.add_typer(commands)
