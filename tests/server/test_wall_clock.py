"""`mockraft serve` on a machine whose wall clock is set back and forward by an hour."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from mockraft.kafka.processes import wait_until
from mockraft.wire import record_batch
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest

from ..cli.cli import started
from ..conftest import registration_request
from ..fetches import fetch_request
from ..live_client import DEADLINE_S, LiveClient
from ..topics import topic

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"
READY = r"mockraft ready bootstrap=127.0.0.1:(\d+) cluster_id=\S+ node_id=3000 admin=off .*\n"
PROGRAM = """
import itertools, sys, time
shifts_ns = itertools.cycle([int(text) * 10**9 for text in sys.argv.pop(1).split(",")])
real_ns = time.time_ns
time.time_ns = lambda: real_ns() + next(shifts_ns)
time.time = lambda: time.time_ns() / 1e9
from mockraft.cli import main
main()
"""


@contextmanager
def served(shifts_s: str, data_dir: Path) -> Iterator[LiveClient]:
    """Run `serve`; each reading of the wall clock is off by the next of these numbers of seconds."""
    where = ("serve", "--port", "0", "--data-dir", data_dir, "--cluster-id", CLUSTER_ID)
    arguments = (*where, "--metadata-max-idle-interval-ms", "100")
    with (
        started(shifts_s, *arguments, ready=READY, command=("-c", PROGRAM)) as (_, ready),
        closing(LiveClient(int(ready[1]))) as client,
    ):
        yield client


def register(client: LiveClient) -> int:
    """Register broker 1; return its epoch."""
    epoch: int = client.send(registration_request(broker_id=1, cluster_id=CLUSTER_ID), 4).broker_epoch
    return epoch


def assert_unfenced(client: LiveClient, broker_epoch: int) -> None:
    """A heartbeat leaves broker 1 unfenced."""
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=broker_epoch, current_metadata_offset=1 << 40)
    answer = client.send(beat, 2)
    assert (answer.error_code, answer.is_fenced) == (0, False)


def assert_serves(client: LiveClient, broker_epoch: int, name: str, ticks: int) -> None:
    """Broker 1 stays unfenced over so many ticks of 100 ms and more, and a topic is created on it."""
    for _ in range(ticks):
        end = timestamps(client, 0)[-1][0]
        wait_until(lambda end=end: timestamps(client, 0)[-1][0] > end, DEADLINE_S, "a NoOpRecord")  # type: ignore[misc]
        assert_unfenced(client, broker_epoch)
    (created,) = client.send(CreateTopicsRequest(topics=[topic(name, 1, 1)], timeout_ms=30_000), 7).topics
    assert created.error_code == 0


def timestamps(client: LiveClient, offset: int) -> list[tuple[int, int]]:
    """The last offset and the largest timestamp of each batch."""
    for epoch in range(1, 10):
        request = fetch_request(offset, epoch, max_wait_ms=0, max_bytes=1 << 24)
        partition = client.send(request, 17).responses[0].partitions[0]
        if partition.error_code == 0:
            headers = record_batch.read_headers(partition.records)
            return [(header.last_offset, header.max_timestamp_ms) for header in headers]
    raise AssertionError("no epoch below 10")


def test_steps_of_the_wall_clock_fence_no_broker_and_stop_no_timer(tmp_path: Path) -> None:
    with served("0,3600,-3600", tmp_path) as client:
        broker_epoch = register(client)
        assert_unfenced(client, broker_epoch)
        # Sessions are checked eight times in the timeout of 9 s.
        assert_serves(client, broker_epoch, "orders", ticks=14)
        times = [at_ms for _, at_ms in timestamps(client, 0)]
        assert times == sorted(times)
        assert times[-1] - times[0] < DEADLINE_S * 1000


def test_restarts_an_hour_earlier_and_later_keep_brokers_and_timers(tmp_path: Path) -> None:
    broker_epoch = -1
    for number, shift_s in enumerate((0, -3600, 3600)):
        with served(str(shift_s), tmp_path) as client:
            broker_epoch = register(client) if broker_epoch < 0 else broker_epoch
            assert_unfenced(client, broker_epoch)
            assert_serves(client, broker_epoch, f"topic-{number}", ticks=2)
            times = [at_ms for _, at_ms in timestamps(client, 0)]
    assert min(times) < times[0] - 3_000_000
    assert max(times) > times[0] + 3_000_000
