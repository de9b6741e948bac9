"""The options of `mockraft` itself: --version."""

from __future__ import annotations

from typing import Annotated

import typer


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from mockraft.wire import codec_path
        from mockraft.wire.connection import SOFTWARE_VERSION

        about = f"speaking as Kafka {SOFTWARE_VERSION}, codec {codec_path.path}"
        typer.echo(f"mockraft {version('mockraft')}, {about}")
        raise typer.Exit


def mockraft(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A Kafka KRaft controller for tests: unmodified brokers run on it."""
