"""The bounds of the controller's, the cluster's and the codec's benchmark, with fake measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from controller import Runs
    from load import Measured
    from result import Gate

THRICE = 3


def measured(per_s: float, p99_ms: float, cpu_us: float) -> Measured:
    from load import Measured

    return Measured(int(per_s), 0, 0, 1.0, per_s * cpu_us / 1e6, 0.2, p99_ms / 2, p99_ms, 2 * p99_ms)


def peer(per_s: float) -> Measured:
    return measured(per_s, 0.1, 5.0)


def controller_gates(
    per_s: float, p99_ms: float, cpu_us: float, *, with_speed: bool = True, peer_per_s: float = 90_000
) -> dict[str, Gate]:
    """Return the bounds when Kafka's controller has 10,000 answers a second, a p99 of 4 ms and 20 µs for an answer."""
    import controller
    from contenders import PURE, SPEED
    from result import THEIRS

    ours, theirs = [measured(per_s, p99_ms, cpu_us)] * THRICE, [measured(10_000, 4.0, 20.0)] * THRICE
    kinds = {**({SPEED: ours} if with_speed else {}), PURE: ours, THEIRS: theirs}
    peers = dict.fromkeys(controller.PEERS.values(), [peer(peer_per_s)] * THRICE)
    results: Runs = {
        load: kinds if load == controller.REGISTRATION else {**kinds, **peers} for load in controller.RATES[SPEED]
    }
    return {gate.what: gate for gate in controller.gates(results)}


def test_controller_at_its_bounds_meets_them() -> None:
    gates = controller_gates(30_000, 2.0, 12.0)
    assert [gate.what for gate in gates.values() if not gate.holds] == []
    assert len(gates) == 15


@pytest.mark.parametrize(
    ("figures", "missed"),
    [
        ((29_000, 2.0, 12.0), 2),  # heartbeats at 10 connections, registrations
        ((30_000, 2.1, 12.0), 3),  # p99 at each number of connections
        ((30_000, 2.0, 12.4), 3),  # CPU time at each number of connections
        ((13_000, 2.0, 12.0), 9),  # all rates: six with the codec in C, three in pure Python
    ],
)
def test_controller_that_is_a_little_worse_misses_them(figures: tuple[float, float, float], missed: int) -> None:
    gates = controller_gates(*figures)
    assert sum(not gate.holds for gate in gates.values()) == missed


def test_a_rate_out_of_the_peers_reach_becomes_a_share_of_it() -> None:
    gates = controller_gates(16_100, 2.0, 12.0, peer_per_s=20_000)
    missed = {name: gate.bound for name, gate in gates.items() if not gate.holds}
    assert missed == {"BrokerRegistration, 100 connections, mockraft[speed]: answers per second ÷ Kafka's": "≥ 3"}
    kept = gates["Fetch of the whole log, 100 connections, mockraft[speed]: answers per second ÷ Kafka's"]
    shared = gates["BrokerHeartbeat, 10 connections, mockraft[speed]: answers per second ÷ Kafka's"]
    pure = gates["BrokerHeartbeat, 10 connections, mockraft, pure Python: answers per second ÷ Kafka's"]
    assert kept.bound == "≥ 1.5 (1.5, or 0.8 of its peer's 2.00)"
    assert shared.bound == "≥ 1.6 (3, or 0.8 of its peer's 2.00)"
    assert pure.bound == "≥ 1.4 (2.4, or 0.7 of its peer's 2.00)"


def test_bounds_of_a_codec_that_is_not_installed_are_missed() -> None:
    gates = controller_gates(90_000, 0.1, 1.0, with_speed=False)
    missing = [gate for gate in gates.values() if gate.measured == "mockraft-speed is not installed"]
    assert len(missing) == 12
    assert not any(gate.holds for gate in missing)


def codec_gates(pure_ns: float, speed_ns: float) -> list[str]:
    """Return the missed bounds when kio takes 100 ns to decode and 10 times that to encode."""
    import codec
    from codec_peers.import_times import ALL, ONE, YARDSTICK
    from codec_peers.in_python import KAFKA_PYTHON, KIO, PURE, SPEED

    def row(ours: float, accelerated: float, kio: float) -> dict[str, list[float]]:
        return {PURE: [ours] * 3, SPEED: [accelerated] * 3, KIO: [kio] * 3, KAFKA_PYTHON: [9 * kio] * 3}

    timed = {
        "decode": {"a": row(pure_ns, speed_ns, 100), "b": row(pure_ns, speed_ns, 100)},
        "encode": {"a": row(60, 12, 1000)},
    }
    imports = {ONE: [1.5, 3.0], YARDSTICK: [1.0, 1.1], ALL: [30.0]}
    return [gate.what for gate in codec.gates(timed, imports) if not gate.holds]


def test_codec_within_its_bounds_meets_them() -> None:
    assert codec_gates(pure_ns=100, speed_ns=30) == []


def test_slow_codec_misses_its_bounds() -> None:
    assert codec_gates(pure_ns=120, speed_ns=101) == [
        "decode, kio's time ÷ mockraft[speed]'s, mean",
        "decode, kio's time ÷ mockraft, pure Python's, mean",
        "decode, kio's time ÷ mockraft[speed]'s, least of all messages",
    ]


def test_snapshots_of_a_formatted_folder_are_not_counted(tmp_path: Path) -> None:
    from cluster import snapshots

    for name in ("bootstrap.checkpoint", "00000000000000000000-0000000000.checkpoint", "leader-epoch-checkpoint"):
        (tmp_path / name).touch()
    assert snapshots(tmp_path) == []
    (tmp_path / "00000000000000007029-0000000001.checkpoint").touch()
    assert [path.name for path in snapshots(tmp_path)] == ["00000000000000007029-0000000001.checkpoint"]
