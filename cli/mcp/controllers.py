"""The one controller that an assistant works on: one that runs already, or a process that the assistant started."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from threading import Timer
from typing import Literal, Self

from mockraft.cli.admin.api import AdminClient

START_S = 120
STOP_S = 10
ERROR_LENGTH = 10_000
READY = re.compile(r"mockraft ready bootstrap=(?P<bootstrap>\S+) .*admin=(?P<admin>http\S+)")


class NoControllerError(Exception):
    """There is no controller, or it may not be changed; the text says what to do."""


class Controllers:
    """The admin API of the controller in use, with the right to change it; a context manager that ends what it started.

    `given` is a controller that runs already; `allow_changes` permits changes of it, and of twins of real controllers.
    """

    def __init__(self, given: AdminClient | None, allow_changes: bool = False) -> None:
        self._given = given
        self._allow_changes = allow_changes
        self._process: subprocess.Popen[str] | None = None
        self._started: AdminClient | None = None
        self._is_twin = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def to_read(self) -> AdminClient:
        """Return the API of the controller in use. NoControllerError without one."""
        api = self._started or self._given
        if api is None:
            raise NoControllerError("no controller runs: call start_controller")
        return api

    def to_change(self) -> AdminClient:
        """Return the API of a controller that may be changed. NoControllerError."""
        api = self.to_read()
        if (api is self._given or self._is_twin) and not self._allow_changes:
            raise NoControllerError(
                f"{api.url} is read only: call start_controller for one of your own that is no twin, "
                "or ask for mockraft mcp --allow-changes"
            )
        return api

    def start(self, command: Literal["serve", "twin"], options: Sequence[str]) -> dict[str, str]:
        """Start `mockraft serve` or `twin` in place of the former process; return its addresses. NoControllerError.

        The process also ends with this one, whose end closes its standard input. Variables MOCKRAFT_… are not for it:
        they may name the data directory of somebody else's controller.
        """
        self.stop()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MOCKRAFT_")}
        self._is_twin = command == "twin"
        ports = ["--port", "0", "--admin-port", "0", "--until-stdin-ends"]
        with tempfile.TemporaryFile("w+") as errors:  # a pipe that nobody reads would stop a process that writes much
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mockraft", command, *ports, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
            assert self._process.stdout is not None
            too_late = Timer(START_S, self._process.kill)
            too_late.start()
            ready = READY.match(self._process.stdout.readline())
            too_late.cancel()
            if ready is None:
                self.stop()
                errors.seek(0)
                about = f"mockraft {command} ended without a message, or had none in {START_S} s"
                raise NoControllerError(errors.read(ERROR_LENGTH).strip() or about)
        self._started = AdminClient(ready["admin"])
        return {"bootstrap": ready["bootstrap"], "admin": ready["admin"]}

    def stop(self) -> None:
        """End the process that was started, if there is one."""
        self._started = None
        if self._process is None:
            return
        process, self._process = self._process, None
        try:
            process.communicate(timeout=STOP_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
