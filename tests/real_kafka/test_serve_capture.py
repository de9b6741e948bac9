"""A real broker on the captured answers of a real controller."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mockraft.kafka.processes import KafkaBroker, random_uuid

pytestmark = pytest.mark.real_kafka

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """`mockraft serve-capture` of the real controller's capture."""
    command = [sys.executable, "-m", "mockraft", "serve-capture", "--capture", str(CAPTURE), "--port", "19093"]
    with (
        (tmp_path / "told").open("w") as told,
        subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=told, text=True
        ) as process,
    ):
        assert process.stdout is not None
        yield process.stdout.readline().partition("bootstrap=")[2].strip()
        process.terminate()
        assert process.wait(20) == 0
    told_at_the_end = (tmp_path / "told").read_text()
    assert "BrokerRegistration: 1 answered" in told_at_the_end
    assert "BrokerHeartbeat: " in told_at_the_end


def test_a_real_broker_runs_on_captured_answers(
    bootstrap: str, start_brokers: Callable[..., dict[int, KafkaBroker]]
) -> None:
    (broker,) = start_brokers(bootstrap, random_uuid(), 1).values()
    registered = broker.wait_for_log(r"registered broker 1 with broker epoch (\d+)", 10, "its registration")
    assert registered[1] == "17"  # the captured controller's word
