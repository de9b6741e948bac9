"""The options of `mockraft serve` that open the admin API."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mockraft.server.admin.serving import AdminServer
    from mockraft.server.admin.settings import AdminSettings
    from mockraft.server.double import Double

OFF = "off"

AdminPort = Annotated[
    str,
    typer.Option(help="Port of the admin API and the live page, off for none; 0 takes any free one.", metavar="PORT"),
]
AdminHost = Annotated[str, typer.Option(help="Address that the admin API listens on.")]
AdminTokenFile = Annotated[
    Path | None, typer.Option(help="File with the token that users of the admin API must show (Bearer).")
]
AdminInsecure = Annotated[
    bool, typer.Option("--admin-insecure", help="Open the admin API to other machines without a token.")
]

VirtualClock = Annotated[
    bool,
    typer.Option("--virtual-clock", help="Time stands still until POST /v1/clock/advance; one controller only."),
]


def checked(options: Mapping[str, Any]) -> AdminSettings | None:
    """How the admin API listens, None for not at all. BadParameter."""
    said = options["admin_port"]
    if options["virtual_clock"] and (said == OFF or options["controllers"] > 1 or options["brokers"]):
        about = "who moves it needs --admin-port; elections and simulated brokers need time that goes by itself"
        raise typer.BadParameter(about, param_hint="--virtual-clock")
    if said == OFF:
        return None
    if not said.isdecimal() or int(said) > 65_535:
        raise typer.BadParameter(f"{said} is neither a port nor {OFF}", param_hint="--admin-port")
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        about = "the admin API needs two more packages: pip install 'mockraft[admin]'"
        raise typer.BadParameter(about, param_hint="--admin-port")
    from mockraft.server.admin.settings import AdminSettings

    token_file = options["admin_token_file"]
    try:
        token = None if token_file is None else token_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint="--admin-token-file") from error
    try:
        return AdminSettings(options["admin_host"], int(said), token, options["admin_insecure"])
    except ValueError as error:
        if token_file is not None:
            raise typer.BadParameter(str(error), param_hint="--admin-token-file") from error
        about = f"{options['admin_host']} can be reached by others: add --admin-token-file, or --admin-insecure"
        raise typer.BadParameter(about, param_hint="--admin-host") from error


async def start(double: Double, settings: AdminSettings) -> AdminServer:
    """Open the admin API. OSError when the address cannot be had."""
    from mockraft.recorder import LocalRecorder
    from mockraft.server.admin.serving import AdminServer

    return await AdminServer.start(double, settings, LocalRecorder())
