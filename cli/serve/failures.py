"""Errors that end `mockraft serve`, each with its exit code."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from mockraft.cli.exit_codes import ExitCode
from mockraft.cli.logs import print_error

if TYPE_CHECKING:
    from mockraft.server.config import ControllerConfig


def fail(code: ExitCode, message: str) -> int:
    """Print an error after the lines of the log; return its code."""
    print_error(f"mockraft serve: {message}")
    return code


def is_about_address(error: OSError) -> bool:
    """Return True if it is the address that cannot be listened on."""
    return error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES) or isinstance(error, socket.gaierror)


def cannot_listen(config: ControllerConfig, controllers: int, error: OSError) -> str:
    """Return the message for an address that cannot be listened on."""
    where = f"{config.host}:{config.port}"
    if controllers > 1 and config.port:
        where = f"{where} to {config.port + controllers - 1}, a port for each controller"
    hint = "; --port 0 takes any that is free" if error.errno == errno.EADDRINUSE else ""
    return f"cannot listen on {where}: {error.strerror}{hint}"
