import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, SyncController
from mockraft.server.admin.serving import AdminServer
from mockraft.server.admin.settings import AdminSettings

from ..cli import invoke

TOKEN = "sesame"


class Cli:
    """The command line at an admin API: gives what a command prints, and knows how the last one ended."""

    def __init__(self, url: str) -> None:
        self.environment = {"MOCKRAFT_ADMIN": url, "MOCKRAFT_ADMIN_TOKEN": TOKEN}
        self.exit_code = 0
        self.errors = ""

    def __call__(self, *said: str | int | float | Path, **environment: str) -> str:
        result = invoke(*said, environment=self.environment | environment)
        self.exit_code, self.errors = result.exit_code, result.stderr
        return result.stdout

    def json(self, *said: str | int | float | Path) -> Any:
        return json.loads(self(*said, "--json"))


@pytest.fixture(scope="module")
def controller() -> Iterator[SyncController]:
    with Controller.sync(brokers=2, assert_all_used=False) as running:
        yield running


@pytest.fixture(scope="module")
def url(controller: SyncController) -> Iterator[str]:
    thread = controller._thread
    server = thread.run(AdminServer.start(controller.inside, AdminSettings(token=TOKEN)))
    yield server.url
    thread.run(server.stop())


@pytest.fixture
def cli(url: str) -> Cli:
    return Cli(url)
