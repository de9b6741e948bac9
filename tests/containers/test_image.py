"""The container image: small, not root, healthy when it answers, and ended by SIGTERM."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from mockraft.kafka_processes import wait_until

from .conftest import run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

OWN_LAYERS_BYTES_MAX = 120_000_000


@pytest.fixture
def container(image: str) -> Iterator[str]:
    """A container that runs, as the README starts it."""
    name = run("docker", "run", "--detach", "--health-interval", "1s", image).strip()
    wait_until(lambda: "mockraft ready bootstrap=" in run("docker", "logs", name), 60, "ready")
    yield name
    run("docker", "rm", "--force", name)


def test_it_becomes_healthy_and_says_where_it_listens(container: str) -> None:
    def health() -> str:
        return run("docker", "inspect", "--format", "{{.State.Health.Status}}", container).strip()

    wait_until(lambda: health() == "healthy", 60, "healthy")
    assert re.search(r"mockraft ready bootstrap=\w+:9093 ", run("docker", "logs", container))


def test_a_container_whose_controller_does_not_answer_is_not_healthy(image: str) -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", image, "health", "--timeout-ms", "500"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "127.0.0.1:9093 does not answer" in done.stdout


def test_nothing_in_it_runs_as_root(container: str) -> None:
    assert run("docker", "exec", container, "id", "--user").strip() == "10001"


def test_it_ends_cleanly_on_sigterm(container: str) -> None:
    run("docker", "stop", "--time", "20", container)
    assert run("docker", "inspect", "--format", "{{.State.ExitCode}}", container).strip() == "0"


def test_it_adds_little_to_its_base(image: str, base_image: str) -> None:
    sizes = [json.loads(run("docker", "inspect", "--format", "{{.Size}}", name)) for name in (image, base_image)]
    assert sizes[0] - sizes[1] < OWN_LAYERS_BYTES_MAX
