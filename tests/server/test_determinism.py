"""The same options, seed and inputs give the same bytes out and the same log."""

import random
from pathlib import Path
from typing import Any

from mockraft.server.apis.registry import APIS
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.controller import Controller
from mockraft.server.node import Node
from mockraft.server.raft.raft import Raft
from mockraft.spark_replay.exchanges import read_exchanges

CAPTURE = Path(__file__).parents[1] / "captures" / "controller-4.3.1.pcap"
START_MS = 1_700_000_000_000


def captured_requests() -> list[tuple[int, bytes]]:
    """(connection, request as sent) of real brokers and tools, in order."""
    connections: dict[Any, int] = {}
    requests = []
    for exchange in read_exchanges(CAPTURE):
        if exchange.request is not None:
            connection_id = connections.setdefault(exchange.connection, len(connections) + 1)
            data = exchange.request
            requests.append((connection_id, len(data).to_bytes(4, "big") + data))
    return requests


def replayed(requests: list[tuple[int, bytes]]) -> tuple[list[Any], bytes]:
    """Everything the node said, and its log."""
    config = ControllerConfig(cluster_id="p66Y0sRpQNGVKjK4oTgauw", seed=9, connections_max=1000)
    rng = random.Random(config.seed)
    controller = Controller(config, Raft.open(config, START_MS, rng), rng, START_MS)
    node = Node(controller, APIS)
    effects: list[Any] = []
    for connection_id in {connection_id for connection_id, _ in requests}:
        effects += node.connected(connection_id, "127.0.0.1:1", START_MS)
    now_ms = START_MS
    for number, (connection_id, data) in enumerate(requests):
        now_ms += number % 7
        effects += node.step(connection_id, data, now_ms)
        if node.next_tick_ms(now_ms) <= now_ms:
            effects += node.tick(now_ms)
    return effects, controller.log.read(0, 1 << 30)


def test_the_same_inputs_give_the_same_bytes_and_the_same_log() -> None:
    requests = captured_requests()
    assert len(requests) > 500
    first, second = replayed(requests), replayed(requests)
    assert len(first[0]) > 500
    assert first == second
