"""Options and output shared by the commands of the admin API: its URL, JSON instead of tables, errors, exit codes."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from mockraft.cli.admin.api import Api, RefusedError, UnreachableError
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.option_fields import as_typer, option

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json
    from rich.console import Console, RenderableType

DEFAULT_URL = "http://127.0.0.1:8080"
PIPE_COLUMNS = 160

ENDING = f"""\b
The controller is the one with an admin API: mockraft serve --admin-port 8080. Another than http://127.0.0.1:8080 is
given by --admin or MOCKRAFT_ADMIN, its token by --token-file or MOCKRAFT_ADMIN_TOKEN.

{exit_codes(ExitCode.NO_ANSWER, ExitCode.MISSING, failed="refused (the reason is on stderr)")}"""


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """Options of every command: where the API is, and how to print what it answers."""

    admin: str | None = option(None, metavar="URL", help="The admin API. Default: MOCKRAFT_ADMIN, or port 8080 here.")
    token_file: Path | None = option(None, metavar="FILE", help="File with the API's token.")
    as_json: bool = option(False, "--json", help="The API's JSON instead of a table.")


class Remote:
    """A command's connection to the API and to the terminal; `as_json` asks for JSON."""

    def __init__(self, api: Api, as_json: bool) -> None:
        self.api = api
        self.as_json = as_json

    @property
    def console(self) -> Console:
        """The terminal; a pipe gets wide lines."""
        from rich.console import Console

        return Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False, emoji=False)

    def show(self, tree: Json, say: str | Callable[[], RenderableType]) -> None:
        """Print JSON where that is wanted, else a text or what Rich can print."""
        if self.as_json:
            print(json.dumps(tree, indent=2))
        elif isinstance(say, str):
            print(say)
        else:
            self.console.print(say())


Command = Callable[..., None]

GROUPS: list[typer.Typer] = []
"""The commands of this package that have subcommands."""


def group(name: str, about: str, short: str) -> typer.Typer:
    """Add a command that lists without a subcommand, and has subcommands."""
    GROUPS.append(
        typer.Typer(
            name=name,
            help=about,
            short_help=short,
            epilog=ENDING,
            invoke_without_command=True,
            rich_markup_mode=None,
        )
    )
    return GROUPS[-1]


def remote(commands: typer.Typer, name: str | None = None, short: str | None = None) -> Callable[[Command], Command]:
    """Make a function of a Remote and options a command; without a name what its group does by itself."""

    def made(do: Command) -> Command:
        def run(ctx: typer.Context, shared: RemoteOptions, **given: Any) -> None:
            if ctx.invoked_subcommand is None:
                _run(lambda to: do(to, **given), shared, ctx)

        own = list(inspect.signature(do, eval_str=True).parameters.values())[1:]
        ctx, shared, _ = inspect.signature(run, eval_str=True).parameters.values()
        named = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (ctx, *own, shared)]
        run.__dict__["__signature__"] = inspect.Signature(named)
        run.__doc__ = do.__doc__
        if name is None:
            commands.callback(invoke_without_command=True)(as_typer(run))
        else:
            commands.command(name, short_help=short, epilog=ENDING)(as_typer(run))
        return do

    return made


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], none: str) -> RenderableType:
    """A table of texts, or the text `none` without rows."""
    from rich.table import Table

    found = [[_cell(value) for value in row] for row in rows]
    if not found:
        return none
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in found:
        shown.add_row(*row)
    return shown


def compact(tree: Json) -> str:
    """JSON in one line."""
    return json.dumps(tree, separators=(", ", ": "))


def given(**fields: Json) -> dict[str, Json]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def assignments(given: Sequence[str], option: str) -> dict[str, Json]:
    """`name=value` as an object; a value is JSON, or a text where it is none."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint=option)
        found[name] = value_of(value)
    return found


def value_of(text: str) -> Json:
    """JSON, or the text itself where it is none."""
    value: Json = text
    with contextlib.suppress(ValueError):
        value = json.loads(text)
    return value


def _cell(value: object) -> RenderableType:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text("-" if value is None else str(value))


def _run(do: Callable[[Remote], None], options: RemoteOptions, ctx: typer.Context) -> None:
    # What was given before the subcommand counts too: mockraft brokers --admin URL fence 1.
    before = ctx.parent.params if ctx.parent is not None else {}
    given = {name: value or before.get(name) for name, value in asdict(options).items()}
    url = given["admin"] or os.environ.get("MOCKRAFT_ADMIN") or DEFAULT_URL
    try:
        do(Remote(Api(url, token_in(given["token_file"])), bool(given["as_json"])))
        sys.stdout.flush()
    except RefusedError as refusal:
        _fail(ctx, refusal, ExitCode.FAILED)
    except UnreachableError as silence:
        _fail(ctx, silence, ExitCode.NO_ANSWER)
    except BrokenPipeError:
        raise  # as in `mockraft brokers | head`; click ends without a message
    except OSError as error:
        _fail(ctx, error, ExitCode.USAGE)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.DONE) from None


def token_in(file: Path | None) -> str | None:
    """Return the token of a file, without one that of MOCKRAFT_ADMIN_TOKEN; BadParameter if it cannot be read."""
    if file is None:
        return os.environ.get("MOCKRAFT_ADMIN_TOKEN")
    try:
        return file.read_text().strip()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="--token-file") from None


def _fail(ctx: typer.Context, error: Exception, code: ExitCode) -> None:
    print(f"{ctx.command_path}: {error}", file=sys.stderr)
    raise typer.Exit(code) from None
