"""The Typer command of `mockraft serve`, made from the table of options; imported when plain reading is not enough."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.grouped_help import GroupedCommand
from mockraft.cli.serve import command
from mockraft.cli.serve.options import GROUPS, OPTIONS, OptionError, variables
from mockraft.server.options import Option

ABOUT = """Run a Kafka KRaft controller, or a quorum of several, that brokers can use as their only one.

Prints one line on stdout once it accepts connections:

\b
  mockraft ready bootstrap=127.0.0.1:9093 cluster_id=… node_id=3000 admin=off release=4.4 metadata_version=33

A broker joins it with that cluster id and three properties:

\b
  controller.quorum.bootstrap.servers=127.0.0.1:9093
  controller.listener.names=CONTROLLER
  process.roles=broker
  (kafka-storage.sh format -t CLUSTER_ID -c broker.properties; kafka-server-start.sh broker.properties)

Without --data-dir the log is in memory, and brokers must not outlive the controller: a broker stops when its
controller comes back with a shorter log. SIGTERM and SIGINT end the controller with exit code 0.

\b
  mockraft serve --port 0 --brokers 3              any free port, three simulated brokers that serve clients
  mockraft serve --data-dir controller-data        the log stays, in Kafka's own format
  mockraft serve --controllers 3                   a quorum in one process
  mockraft serve --metadata-version 3.9            for older brokers
  mockraft serve --stubs stubs.yaml                errors, delays, missing answers and other faults
  mockraft serve --release 3.9                     a controller of Kafka 3.9
  mockraft serve --admin-port 8080                 the admin API and the live page at 127.0.0.1:8080

Each option may be an environment variable instead, as MOCKRAFT_PORT for --port; the option goes first. A list has
spaces between its values. Secrets are read from files or variables, because other users can see a command line.

""" + exit_codes(
    ExitCode.CANNOT_LISTEN,
    ExitCode.UNUSABLE_DIRECTORY,
    ExitCode.CANNOT_CONTINUE,
    ExitCode.MISSING,
    done="it was stopped",
)


class ServeCommand(GroupedCommand):
    """`serve`, whose help has a list of options for each of `GROUPS`."""

    groups = GROUPS


def register(app: typer.Typer, run: Callable[[dict[str, object]], int] = command.run) -> None:
    """Add `mockraft serve`; `run` carries it out and returns the exit code."""
    app.command("serve", help=ABOUT, cls=ServeCommand)(_typer_function(run))


def _typer_function(run: Callable[[dict[str, object]], int]) -> Callable[..., None]:
    """Return a function with a parameter for each option, as Typer reads them; it exits with the code of `run`."""

    from_variables = {OPTIONS[name].flag: OPTIONS[name].variable for name in variables()}

    def serve(context: typer.Context, **options: object) -> None:
        given = frozenset(name for name in options if _is_given(context, name))
        try:
            code = run({**options, "given": given})
        except OptionError as error:
            raise typer.BadParameter(str(error), param_hint=_hint(error.flag, from_variables)) from error
        if code:
            raise typer.Exit(code)

    parameters = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=_annotation(option))
        for name, option in OPTIONS.items()
    ]
    serve.__dict__["__signature__"] = inspect.Signature(parameters)
    serve.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return serve


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _hint(flag: str, from_variables: Mapping[str, str]) -> str | None:
    """Return the name of an option as click writes it in errors, with its variable where that is set."""
    return f"'{flag}' (env var: '{from_variables[flag]}')" if flag in from_variables else flag or None


def _annotation(option: Option) -> object:
    kind: Any = list[option.kind] if option.is_list else option.kind  # type: ignore[name-defined]  # made at run time
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar}
    if option.name in variables():
        settings["envvar"] = option.variable
    if option.shown_default is not None:
        settings["show_default"] = option.shown_default
    if option.kind is int:
        settings |= {"min": option.lowest, "max": option.shown_highest}
    declared = [option.flag] if option.kind is bool else []
    return Annotated[kind | None if option.default is None else kind, typer.Option(*declared, **settings)]
