"""Measure the steps of one heartbeat from socket to socket, in microseconds of CPU time, and write the page about them.

    python benchmarks/steps.py [--write]

Each step of the node is called again and again on its own, in a process for each path of the codec. The kernel's share
is that of a server in C that sends 20 fixed bytes, and one in Python that does so is the limit of pure Python. What is
around the node is the rest of what the controller takes. `--write` replaces the table of
docs/explanation/where-time-goes.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import contenders
import load
from contenders import PURE, SESSION_TIMEOUT_MS, SPEED, address, brokers_up, heartbeat
from growth import World
from mockraft.kafka_api.clock import RealClock
from mockraft.kafka_api.connections import PendingRequest
from mockraft.server.tcp import TcpListener
from mockraft.wire.connection import parse_request, read_request_body, write_request

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "where-time-goes.md"
ROUNDS, CALLS = 60, 2_000
CONNECTIONS = 100
KINDS = (PURE, SPEED)
SECONDS = 1.0
TURNS = 5
BEGIN, END = "<!-- from here on: benchmarks/steps.py --write -->", "<!-- up to here -->"


def cost_us(call: Callable[[], object]) -> float:
    """Return the least CPU microseconds of a call among many rounds, without those of the loop around it."""

    def least(call: Callable[[], object]) -> float:
        taken = []
        for _ in range(ROUNDS):
            began = time.process_time_ns()
            for _ in range(CALLS):
                call()
            taken.append(time.process_time_ns() - began)
        return min(taken) / CALLS / 1000

    return max(0.0, least(call) - least(lambda: None))


def node_steps() -> list[tuple[str, float]]:
    """Return the steps of a heartbeat through the node, each with its microseconds."""
    world = World()
    world.add_brokers(CONNECTIONS)
    node, now_ms = world.node, world.now_ms
    controller, connection = node.controller, node._connections[1]
    data = world.frame(heartbeat(1, world.epochs[1]), 2)
    frame = data[4:]
    clock = RealClock()
    shell = TcpListener(node, clock)
    shell._timer_ms = 0  # armed, as it is most of the time
    header = parse_request(frame, node.messages)
    api = node.apis[header.api_key]
    body = read_request_body(header, api.request, 1 << 16)
    ctx = node.context(header, connection.client, now_ms)
    later_us = clock.now_us() + 1_000_000_000  # so that it never took long
    request = PendingRequest(connection, api, body, ctx, now_ms, later_us)
    response = api.handle(body, ctx, controller)
    sent = node.written(request, response)

    handle = cost_us(lambda: api.handle(body, ctx, controller))
    dispatch = cost_us(lambda: node.answer(request))
    steps = [
        ("split frames", cost_us(lambda: connection.reader.receive_data(data))),
        ("read the request header", cost_us(lambda: parse_request(frame, node.messages))),
        ("read the body, within the element budget", cost_us(lambda: node._read(header))),
        ("make the context", cost_us(lambda: node.context(header, connection.client, now_ms))),
        ("dispatch: authorizer, active controller, errors", dispatch - handle),
        ("handle: contact, state, directories, response", handle),
        ("write the response", cost_us(lambda: node.written(request, response))),
        ("journal, counts, and the time taken", cost_us(lambda: node._note(request, sent, now_ms))),
        ("find what is due next, and keep the timer", cost_us(lambda: shell.perform((), now_ms))),
    ]

    def step() -> None:
        if len(node.step(1, data, now_ms)) > 1:  # it waits for its turn, because one took long
            node.sent(1, now_ms)

    whole = cost_us(step)
    known = sum(each for name, each in steps if "timer" not in name)
    steps.insert(-1, ("bursts, limits, stubs, parked requests and effects", whole - known))
    return steps


def steps_of(kind: str) -> list[tuple[str, float]]:
    """Return the steps on one path of the codec, measured in a process of its own."""
    with contenders.codec(kind):
        found = subprocess.run([sys.executable, __file__, "--node"], stdout=subprocess.PIPE, check=True).stdout
    steps: list[tuple[str, float]] = json.loads(found)
    return steps


def socket_costs() -> dict[str, float]:
    """Return the least CPU microseconds for one answer of each server, all in one run, in turns."""
    frames = [write_request(heartbeat(each, 1), 2, each, str(each)) for each in range(1, CONNECTIONS + 1)]
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory())
        peers = {
            name: running.enter_context(load.echo(load.HEARTBEAT_ANSWER_BYTES, in_python=in_python))
            for name, in_python in (("C", False), ("Python", True))
        }
        controllers = {kind: contenders.controller(kind, Path(folder), SESSION_TIMEOUT_MS) for kind in KINDS}
        try:
            servers = {name: (*peer, frames) for name, peer in peers.items()}
            for kind, controller in controllers.items():
                with contenders.codec(kind):
                    controller.start()
                controller.wait_until_running()
                with closing(load.TimedConnection(address(controller))) as connection:
                    epochs = brokers_up(connection, controller.cluster_id, CONNECTIONS)
                beats = [write_request(heartbeat(each, epoch), 2, each, str(each)) for each, epoch in epochs.items()]
                servers[kind] = (address(controller), controller.pid, beats)
            found: dict[str, float] = {}
            for _ in range(TURNS):
                for name, (where, pid, sent) in servers.items():
                    measured = load.run(where, pid, load.Load(name, sent, CONNECTIONS), SECONDS)
                    found[name] = min(found.get(name, measured.cpu_us), measured.cpu_us)
            return found
        finally:
            for controller in controllers.values():
                controller.kill()


def table() -> str:
    """Return the table of the page."""
    costs, steps = socket_costs(), {kind: steps_of(kind) for kind in KINDS}
    rest = [costs[kind] - costs["C"] - sum(us for _, us in steps[kind]) for kind in KINDS]
    rows = [
        ("kernel: wait for events, receive, send", [costs["C"]] * len(KINDS)),
        ("around the node: event loop, find the connection, call the kernel, caches that are cold", rest),
        *((same[0][0], [us for _, us in same]) for same in zip(*steps.values(), strict=True)),
    ]
    lines = [f"| step | {' | '.join(f'{kind}, µs' for kind in KINDS)} |", "| --- | --- | --- |"]
    lines += [f"| {step} | {' | '.join(f'{max(us, 0):.2f}' for us in found)} |" for step, found in rows]
    lines += [f"| **sum** | {' | '.join(f'**{costs[kind]:.1f}**' for kind in KINDS)} |", ""]
    lines += [
        f"On {CONNECTIONS} connections. A server of fixed bytes in Python, with one epoll and nothing else, takes "
        f"{costs['Python']:.1f} µs, one in C {costs['C']:.1f} µs.",
        "",
        f"Measured {datetime.now(tz=UTC):%Y-%m-%d} with Python {platform.python_version()}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"replace the table of {PAGE.name}")
    parser.add_argument("--node", action="store_true", help="print only the steps of the node, as JSON")
    options = parser.parse_args()
    if options.node:
        print(json.dumps(node_steps()))
        return
    found = table()
    if not options.write:
        print(found)
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{found}\n\n{END}{after}")


if __name__ == "__main__":
    main()
