"""The admin API of `mockraft serve`: its options checked, its server started.

Clients can connect before the API's modules are imported, which takes longer than all that the controller needs. Their
requests wait for them, those of Kafka's clients do not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mockraft.cli.serve.options import ADMIN_OFF, MissingPackageError
from mockraft.cli.serve.quorum import count
from mockraft.files.given_files import read_text
from mockraft.kafka_api.options import OptionError, blaming

if TYPE_CHECKING:
    from mockraft.server.admin.serving import AdminServer
    from mockraft.server.admin.settings import AdminSettings
    from mockraft.testing.recorder import LocalRecorder


def checked(options: Mapping[str, Any]) -> AdminSettings | None:
    """Return the settings of the admin API; None where it is off. OptionError, MissingPackageError."""
    port = options["admin_port"]
    if options["virtual_clock"]:
        if port == ADMIN_OFF:
            raise OptionError("moving the clock needs --admin-port", "--virtual-clock")
        if count(options) > 1 or options["brokers"]:
            about = "--controllers, --observers and --brokers need a clock that runs; in Python, Controller(brokers=2,"
            raise OptionError(f'{about} clock="virtual") moves brokers too', "--virtual-clock")
    if port == ADMIN_OFF:
        return None
    if not port.isdecimal() or int(port) > 65_535:
        raise OptionError(f"{port} is neither a port nor {ADMIN_OFF}", "--admin-port")
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingPackageError("--admin-port needs two more packages: pip install 'mockraft[admin]'")
    from mockraft.server.admin.settings import AdminSettings

    token_file = options["admin_token_file"]
    with blaming("--admin-token-file", OSError):
        token = None if token_file is None else read_text(token_file).strip()
    try:
        return AdminSettings(
            options["admin_host"],
            int(port),
            token,
            options["admin_insecure"],
            request_timeout_s=options["admin_request_timeout_ms"] / 1000,
            connections_max=options["admin_connections_max"],
        )
    except ValueError as error:
        if token_file is not None:
            raise OptionError(str(error), "--admin-token-file") from error
        about = f"{options['admin_host']} can be reached by others: add --admin-token-file, or --admin-insecure"
        raise OptionError(about, "--admin-host") from error


def server_classes() -> tuple[type[AdminServer], type[LocalRecorder]]:
    """Import what serves the admin API, for a thread beside the controller."""
    # FastAPI looks for models of pydantic 1, and pydantic for plugins: it starts a sixth faster without either.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]
    from mockraft.server.admin.serving import AdminServer
    from mockraft.testing.recorder import LocalRecorder

    return AdminServer, LocalRecorder
