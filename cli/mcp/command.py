"""`mockraft mcp`: an assistant scripts a controller and writes the test."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mockraft.cli.admin.api import AdminClient
from mockraft.cli.admin.remote import token_in
from mockraft.cli.command_line import Command
from mockraft.cli.exit_codes import ExitCode, exit_codes
from mockraft.cli.mcp.controllers import Controllers
from mockraft.cli.refusals import end_without
from mockraft.kafka_api.options import OptionError, option

ABOUT = """Offer a controller to an assistant, as an MCP server on standard input and output.

The assistant starts a controller of its own, scripts stubs and faults, reads the journal and the metadata log, and gets
the pytest test for what it scripted. In the assistant's configuration:

  {"mcpServers": {"mockraft": {"command": "mockraft", "args": ["mcp"]}}}

A controller that runs already, and the twin of a real one, are changed only with --allow-changes:
  mockraft mcp --admin http://127.0.0.1:8080

""" + exit_codes(ExitCode.MISSING, done="the assistant closed standard input")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `mockraft mcp`."""

    admin: str | None = option(
        None, metavar="URL", help="Admin API of a controller that runs. Default: MOCKRAFT_ADMIN."
    )
    token_file: Path | None = option(None, metavar="FILE", help="File with the API's token.")
    allow_changes: bool = option(False, help="Also change the controller at --admin, and twins.")


def run(options: Options) -> None:
    """Serve until standard input ends."""
    url = options.admin or os.environ.get("MOCKRAFT_ADMIN")
    if url and not re.match(r"https?://[^/]", url):
        raise OptionError(f"{url!r} is no URL such as http://127.0.0.1:8080", "--admin")
    if options.token_file is not None and not url:
        raise OptionError("the token is of the API at --admin, which is not given", "--token-file")
    try:
        from mockraft.cli.mcp.tools import make_server
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("mockraft"):
            raise
        end_without("mcp", error.name, "mcp")
    given = AdminClient(url, token_in(options.token_file)) if url else None
    with Controllers(given, options.allow_changes) as controllers:
        make_server(controllers).run("stdio")


COMMANDS = {"mcp": Command("mcp", run, ABOUT)}
