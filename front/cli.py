"""The command `mockraft`.

`mockraft serve` with plain arguments starts without Typer, whose import takes a third of the time until a controller
listens; Typer is imported for every other command, for help and for error messages.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from mockraft.commands.serve.arguments import read
from mockraft.commands.serve.command import run
from mockraft.commands.serve.options import OptionError

if TYPE_CHECKING:
    import typer

ABOUT_MOCKRAFT = """A Kafka KRaft controller for tests: unmodified brokers run on it.

\b
  mockraft run                       three simulated brokers on a controller, live in this terminal
  mockraft run-kafka                 a real Kafka broker on a controller
  mockraft serve --admin-port 8080   a controller to connect to, with its live page at 127.0.0.1:8080
  mockraft serve --help              each command explains itself so
"""


def application(*, only_serve: bool = False, run: Callable[[dict[str, object]], int] = run) -> typer.Typer:
    """Return the command line; with `only_serve` no other command is imported, so that a controller starts sooner."""
    import typer
    from mockraft.commands.grouped_help import GroupedCommands
    from mockraft.commands.serve.help import ABOUT, ServeCommand, typer_function

    app = typer.Typer(
        name="mockraft",
        cls=None if only_serve else GroupedCommands,
        help=ABOUT_MOCKRAFT,
        no_args_is_help=True,
        context_settings={"max_content_width": 120},
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help shows long option names whole
    )
    serve = typer_function(run)
    app.command("serve", help=ABOUT, short_help="Run a controller, or a quorum of several.", cls=ServeCommand)(serve)
    if only_serve:
        app.callback()(_no_options)
        return app
    from mockraft.commands import admin, format_directories, health, run_kafka, version_option
    from mockraft.commands.broker import command as broker
    from mockraft.commands.broker import ids as broker_ids
    from mockraft.commands.codec import command as codec
    from mockraft.commands.conformance import command as conformance
    from mockraft.commands.fleet import command as fleet
    from mockraft.commands.run import command as run_brokers
    from mockraft.commands.serve import capture as serve_capture
    from mockraft.commands.spark import command as spark
    from mockraft.commands.traffic import capture, record, replay

    for commands in (
        run_brokers,
        broker,
        fleet,
        format_directories,
        health,
        broker_ids,
        run_kafka,
        conformance,
        capture,
        record,
        replay,
        serve_capture,
        codec,
        spark,
        admin,
    ):
        commands.register(app)
    app.callback()(version_option.mockraft)
    return app


def main() -> None:
    """Run the command line."""
    only_serve = sys.argv[1:2] == ["serve"]
    if only_serve:
        gc.disable()  # nothing is garbage while it starts; serve enables it again
        if (options := read(sys.argv[2:])) is not None:
            _serve(options)
    application(only_serve=only_serve)(prog_name="mockraft")


def _serve(options: dict[str, object]) -> NoReturn:
    """Run a controller with these options of `serve` and end the process; Typer prints what is wrong with them."""
    try:
        sys.exit(run(options))
    except OptionError as error:
        wrong = error

    def refuse(_: dict[str, object]) -> NoReturn:
        raise wrong

    application(only_serve=True, run=refuse)(prog_name="mockraft")
    raise AssertionError(f"Typer did not report {wrong}")


def _no_options() -> None:
    """Keep a lone command behind its name."""
