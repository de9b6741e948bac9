"""The command `mockraft`."""

import gc
import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, NoReturn

import typer
from mockraft.serve import run, serve
from mockraft.serve_arguments import read
from mockraft.serve_help import ABOUT, ServeCommand


def application(*, only_serve: bool = False, serve: Callable[..., None] = serve) -> typer.Typer:
    """The command line; with `only_serve` no other command is imported, so that a controller starts sooner."""
    app = typer.Typer(
        name="mockraft",
        help="A Kafka KRaft controller for tests: unmodified brokers run on it.",
        no_args_is_help=True,
        context_settings={"max_content_width": 120},
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help shows long option names whole
    )
    app.command("serve", help=ABOUT, short_help="Run a controller, or a quorum of several.", cls=ServeCommand)(serve)
    if only_serve:
        app.callback()(_no_options_of_its_own)
        return app
    from mockraft import (
        admin_cli,
        broker_commands,
        broker_id_commands,
        capture_commands,
        codec_commands,
        conformance_commands,
        fleet_commands,
        format_commands,
        health_commands,
        kafka_commands,
        record_commands,
        replay_commands,
        run_commands,
        serve_capture_commands,
        spark_commands,
    )

    for commands in (
        run_commands,
        broker_commands,
        fleet_commands,
        format_commands,
        health_commands,
        broker_id_commands,
        kafka_commands,
        conformance_commands,
        capture_commands,
        record_commands,
        replay_commands,
        serve_capture_commands,
        codec_commands,
        spark_commands,
        admin_cli,
    ):
        commands.register(app)
    app.callback()(_options_of_mockraft)
    return app


def main() -> None:
    """Run the command line."""
    only_serve = sys.argv[1:2] == ["serve"]
    if only_serve:
        gc.disable()  # nothing is garbage while it starts; serve turns it on again
        if (options := read(serve, sys.argv[2:])) is not None:
            _serve(options)
    application(only_serve=only_serve)(prog_name="mockraft")


def _serve(options: dict[str, Any]) -> NoReturn:
    """Run a controller with these options of `serve`, and end the process; Typer says what is wrong with them."""
    try:
        sys.exit(run(options))
    except typer.Exit as end:
        sys.exit(end.exit_code)
    except typer.BadParameter as error:
        wrong = error

    @wraps(serve)
    def tell(**_: object) -> NoReturn:
        raise wrong

    application(only_serve=True, serve=tell)(prog_name="mockraft")
    raise AssertionError(f"{wrong} was not told")


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from mockraft.wire.client import SOFTWARE_VERSION

        typer.echo(f"mockraft {version('mockraft')}, speaking as Kafka {SOFTWARE_VERSION}")
        raise typer.Exit


def _options_of_mockraft(
    _version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A Kafka KRaft controller for tests: unmodified brokers run on it."""


def _no_options_of_its_own() -> None:
    """Keeps a lone command behind its name."""
