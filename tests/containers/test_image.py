"""The container image: small, not root, healthy when it answers, and ended by SIGTERM."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from mockraft.kafka.processes import wait_until

from ..budgets import soak
from .conftest import ROOT, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

OWN_LAYERS_BYTES_MAX = 120_000_000


@pytest.fixture
def container(image: str) -> Iterator[str]:
    """A container that runs, as the README starts it."""
    name = run("docker", "run", "--detach", "--health-interval", "1s", image).strip()
    wait_until(lambda: "mockraft ready bootstrap=" in run("docker", "logs", name), 60, "ready")
    yield name
    run("docker", "rm", "--force", name)


def test_container_becomes_healthy_and_prints_its_address(container: str) -> None:
    def health() -> str:
        return run("docker", "inspect", "--format", "{{.State.Health.Status}}", container).strip()

    wait_until(lambda: health() == "healthy", 60, "healthy")
    assert re.search(r"mockraft ready bootstrap=\w+:9093 ", run("docker", "logs", container))


def test_container_with_an_unresponsive_controller_is_unhealthy(image: str) -> None:
    done = subprocess.run(
        ["docker", "run", "--rm", image, "health", "--timeout-ms", "500"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "127.0.0.1:9093 does not answer" in done.stdout


def test_no_process_runs_as_root(container: str) -> None:
    assert run("docker", "exec", container, "id", "--user").strip() == "10001"


def test_it_ends_cleanly_on_sigterm(container: str) -> None:
    run("docker", "stop", "--time", "20", container)
    assert run("docker", "inspect", "--format", "{{.State.ExitCode}}", container).strip() == "0"


def test_it_adds_little_to_its_base(image: str, base_image: str) -> None:
    sizes = [json.loads(run("docker", "inspect", "--format", "{{.Size}}", name)) for name in (image, base_image)]
    assert sizes[0] - sizes[1] < OWN_LAYERS_BYTES_MAX


READ = """
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches
messages = list(decode_batches(read_frames("/captures/controller-4.3.1.pcap", ports=[19093])))
same = [each for batch in messages for each in batch["roundtrip"].to_pylist()]
print(len(same), all(same))
"""


@soak
def test_with_the_captures_extra_it_decodes_a_capture_and_is_the_controller_in_it(captures_image: str) -> None:
    mounted = ("--volume", f"{ROOT / 'tests' / 'captures'}:/captures:ro")
    read = run("docker", "run", "--rm", *mounted, "--entrypoint", "python", captures_image, "-c", READ)
    assert read.split() == ["1726", "True"]

    source = ("--from", "/captures/controller-4.3.1.pcap")
    name = run("docker", "run", "--detach", *mounted, captures_image, "twin", *source).strip()
    try:
        wait_until(lambda: "ready bootstrap=" in run("docker", "logs", name), 60, "ready")
        assert "127.0.0.1:9093 answers" in run("docker", "exec", name, "mockraft", "health")
    finally:
        sys.stdout.write(run("docker", "logs", name))
        run("docker", "rm", "--force", name)
