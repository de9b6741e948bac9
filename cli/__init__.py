"""The command `mockraft` and its commands, one file or folder each.

A module with commands has `register(app)`. Function parameters are the options, annotated for Typer; imports that take
time happen inside the command. Exit code 2 is a bad option, reported by Typer as BadParameter; other codes are listed
in the command's help.

`mockraft serve` with plain arguments starts without Typer, whose import takes a third of the time until a controller
listens; Typer is imported for every other command, for help and for error messages.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
import warnings
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

ABOUT_MOCKRAFT = """A Kafka KRaft controller for tests: unmodified brokers run on it.

\b
  mockraft run                       three simulated brokers on a controller, live in this terminal
  mockraft run-kafka                 a real Kafka broker on a controller
  mockraft serve --admin-port 8080   a controller to connect to, with its live page at 127.0.0.1:8080
  mockraft serve --help              each command explains itself so
"""


_WRITE_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def application() -> typer.Typer:
    """Return the command line."""
    import typer
    from mockraft.cli import version_option
    from mockraft.cli.command_groups import CommandGroups

    app = typer.Typer(
        name="mockraft",
        cls=CommandGroups,
        help=ABOUT_MOCKRAFT,
        no_args_is_help=True,
        context_settings={"max_content_width": 120},
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help shows long option names whole
    )
    app.callback()(version_option.mockraft)
    return app


def main() -> None:
    """Run the command line. If its output cannot be written, exit with code 2, or 1 silently for a closed pipe."""
    _open_closed_descriptors()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None or error.errno not in _WRITE_ERRORS:
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # the interpreter's own flush must not fail again
        if error.errno == errno.EPIPE:
            sys.exit(1)  # as click and Rich do
        from mockraft.cli.exit_codes import ExitCode

        try:
            print(f"mockraft: cannot write the output: {error.strerror}", file=sys.stderr)
        except OSError:
            os.dup2(nowhere, 2)
        sys.exit(ExitCode.USAGE)


def _open_closed_descriptors() -> None:
    """Open /dev/null for standard streams that are closed: sockets and files must not get their numbers."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, open(descriptor, "w" if descriptor else "r", closefd=False))  # noqa: SIM115


def _run() -> None:
    _check_codec()
    if sys.argv[1:2] == ["serve"]:
        from mockraft.cli.serve.arguments import read

        gc.disable()  # nothing is garbage while it starts; serve enables it again
        if (options := read(sys.argv[2:])) is not None:
            _serve(options)
    application()(prog_name="mockraft")


def _check_codec() -> None:
    """End with one line if `MOCKRAFT_CODEC` asks for what cannot be had; print a warning in one line, too."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            import mockraft.wire.codec_path  # noqa: F401 - importing it chooses the path
        for warning in caught:
            print(f"mockraft: {warning.message}", file=sys.stderr)
    except (ImportError, ValueError) as error:
        from mockraft.cli.exit_codes import ExitCode

        print(f"mockraft: {error}", file=sys.stderr)
        sys.exit(ExitCode.USAGE if isinstance(error, ValueError) else ExitCode.MISSING)


def _serve(options: dict[str, object]) -> NoReturn:
    """Run a controller with these options of `serve` and end the process; Typer prints what is wrong with them."""
    import logging

    from mockraft.cli.serve.command import run
    from mockraft.cli.serve.options import OptionError

    try:
        code = run(options)
        logging.shutdown()
        # Everything is written. To free the objects of a thousand brokers one by one takes a second.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    except OptionError as error:
        logging.shutdown()
        wrong = error

    import typer
    from mockraft.cli.serve.help import register

    def refuse(_: dict[str, object]) -> NoReturn:
        raise wrong

    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_no_options)
    register(app, refuse)
    app(prog_name="mockraft")
    raise AssertionError(f"Typer did not report {wrong}")


def _no_options() -> None:
    """Keep a lone command behind its name."""
