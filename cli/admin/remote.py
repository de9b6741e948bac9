"""Options and output shared by the commands of the admin API: its URL, JSON instead of tables, errors, exit codes."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mockraft.cli.admin.api import AdminClient, RefusedError, UnreachableError
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.terminal import Terminal
from mockraft.files.given_files import read_text
from mockraft.kafka_api.options import Option, OptionError, option
from mockraft.wire.printable import printable_line
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from mockraft.wire.json_form import Json
    from rich.console import RenderableType


DEFAULT_URL = "http://127.0.0.1:8080"

ENDING = f"""\
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

    def __init__(self, api: AdminClient, as_json: bool) -> None:
        self.api = api
        self.as_json = as_json

    def show(self, tree: Json, say: str | Callable[[], RenderableType]) -> None:
        """Print JSON where that is wanted, else a text or what Rich can print."""
        if self.as_json:
            print(json.dumps(tree, indent=2))
        elif isinstance(say, str):
            print(say)
        else:
            Terminal().print(say())


def known(path: str, name: str, key: str = "id") -> Callable[[], list[str]]:
    """Return a function that asks the admin API for ids, for completion; none where nothing answers."""

    def ask() -> list[str]:
        api = AdminClient(os.environ.get("MOCKRAFT_ADMIN") or DEFAULT_URL, os.environ.get("MOCKRAFT_ADMIN_TOKEN"))
        with contextlib.suppress(RefusedError, UnreachableError):
            return [str(each[key]) for each in api.get(path)[name]]
        return []

    return ask


class RemoteCommands:
    """The commands of one word: what it does by itself, which is to list, and its subcommands.

        commands = RemoteCommands("faults", ABOUT)

        @commands.add("kinds")
        def kinds(to: Remote) -> None: ...

        COMMANDS = {"faults": commands.command}

    A function takes a Remote and its own options; `RemoteOptions` are added.
    """

    def __init__(self, name: str, about: str) -> None:
        self._name = name
        self._about = about
        self._list: Callable[..., None] | None = None
        self._subcommands: dict[str, Command] = {}

    @property
    def command(self) -> Command:
        """The command with its subcommands."""
        return Command(self._name, self._list, self._about, self._subcommands, ENDING)

    def add(self, name: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Make a function a subcommand; without a name it is what the command does by itself."""

        def made(do: Callable[..., None]) -> Callable[..., None]:
            run = _with_remote(do, f"mockraft {self._name} {name}".rstrip())
            if name:
                self._subcommands[name] = Command(name, run, ending=ENDING)
            else:
                self._list = run
            return do

        return made


def _with_remote(do: Callable[..., None], path: str) -> Callable[..., None]:
    """Return a function of a Remote as one of the options of the Remote."""

    def run(shared: RemoteOptions, **given: Any) -> None:
        _run(lambda to: do(to, **given), shared, path)

    own = list(inspect.signature(do, eval_str=True).parameters.values())[1:]
    shared, _ = inspect.signature(run, eval_str=True).parameters.values()
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, shared)]
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    run.__doc__ = do.__doc__
    return run


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], none: str) -> RenderableType:
    """A table of texts, or the text `none` without rows."""
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
            raise OptionError(f"{each!r} is not NAME=VALUE", option)
        found[name] = value_of(value)
    return found


def value_of(text: str) -> Json:
    """JSON, or the text itself where it is none."""
    value: Json = text
    with contextlib.suppress(ValueError):
        value = json.loads(text)
    return value


def _cell(value: object) -> RenderableType:
    if isinstance(value, Text):
        return value
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text("-" if value is None else printable_line(str(value)))


def _run(do: Callable[[Remote], None], options: RemoteOptions, path: str) -> None:
    url = options.admin or os.environ.get("MOCKRAFT_ADMIN") or DEFAULT_URL
    try:
        do(Remote(AdminClient(url, token_in(options.token_file)), options.as_json))
        sys.stdout.flush()
    except RefusedError as refusal:
        _fail(path, refusal, ExitCode.FAILED)
    except UnreachableError as silence:
        _fail(path, silence, ExitCode.NO_ANSWER)
    except BrokenPipeError:
        raise  # as in `mockraft brokers | head`; main ends without a message
    except OSError as error:
        about = f"{os.fspath(error.filename)}: {error.strerror}" if error.filename is not None else error
        _fail(path, about, ExitCode.USAGE)
    except KeyboardInterrupt:
        raise SystemExit(ExitCode.DONE) from None


def token_in(file: Path | None) -> str | None:
    """Return the token of a file, without one that of MOCKRAFT_ADMIN_TOKEN; OptionError if it cannot be read."""
    if file is None:
        return os.environ.get("MOCKRAFT_ADMIN_TOKEN")
    try:
        return read_text(file).strip()
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror}", "--token-file") from None


def _fail(path: str, error: object, code: ExitCode) -> None:
    print(f"{path}: {error}", file=sys.stderr)
    raise SystemExit(code) from None


All = Annotated[bool, Option(flags=("--all",), help="All of them; of faults the plan too.")]


def switches(commands: RemoteCommands, what: str) -> None:
    """Add `on`, `off` and `remove` to the commands about stubs or faults: `what` is "stub" or "fault"."""
    path = f"/v1/{what}s"

    def switched(to: Remote, name: str, enabled: bool) -> None:
        to.show(to.api.send("PATCH", f"{path}/{name}", {"enabled": enabled}), f"{name} is {'on' if enabled else 'off'}")

    def on(to: Remote, name: str) -> None:
        """Switch it on."""
        switched(to, name, True)

    def off(to: Remote, name: str) -> None:
        """Switch it off; its counts stay."""
        switched(to, name, False)

    def remove(to: Remote, name: str | None = None, all_: All = False) -> None:
        """Switch it off and forget it, or all."""
        if (name is None) != all_:
            raise OptionError("say which: an ID or --all")
        to.api.send("DELETE", path if name is None else f"{path}/{name}")
        to.show(None, f"all {what}s are gone" if name is None else f"{name} is gone")

    for do in (on, off):
        do.__annotations__["name"] = Annotated[str, _id_of(what)]
    remove.__annotations__["name"] = Annotated[str | None, _id_of(what)]
    commands.add("on")(on)
    commands.add("off")(off)
    commands.add("remove")(remove)


def _id_of(what: str) -> Option:
    found = known(f"/v1/{what}s", f"{what}s")
    return Option(is_argument=True, metavar="ID", help="Its id, as the list says it.", completes=found)
