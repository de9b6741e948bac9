"""Examples for docs/capture-and-replay.md: read a capture and explain its bytes."""

from collections import Counter
from pathlib import Path

from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.wire import api_keys

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"


def test_reads_requests_with_their_responses() -> None:
    exchanges = read_exchanges(CAPTURE, ports={19093})
    assert Counter(api_keys.name(e.api_key) for e in exchanges).most_common(2) == [
        ("Fetch", 609),
        ("BrokerHeartbeat", 163),
    ]

    slow = [e for e in exchanges if (e.latency_ns or 0) > 4e8]
    assert {api_keys.name(e.api_key) for e in slow} == {"Fetch"}  # they wait for records, at most 500 ms
