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


def controller_gates(
    per_s: float, p99_ms: float, cpu_us: float, *, with_speed: bool = True, peer_cpu_us: float = 5.0
) -> dict[str, Gate]:
    """Return the bounds when Kafka's controller has 10,000 answers a second, a p99 of 4 ms and 20 µs for an answer."""
    import controller
    from contenders import PURE, SPEED
    from result import THEIRS

    ours, theirs = [measured(per_s, p99_ms, cpu_us)] * THRICE, [measured(10_000, 4.0, 20.0)] * THRICE
    kinds = {**({SPEED: ours} if with_speed else {}), PURE: ours, THEIRS: theirs}
    peers = {controller.PEER: [measured(90_000, 0.1, peer_cpu_us)] * THRICE}
    results: Runs = {bound.load: {**kinds, **peers} for bound in controller.bounds()}
    return {gate.what: gate for gate in controller.gates(results)}


def test_controller_at_its_bounds_meets_them() -> None:
    gates = controller_gates(30_000, 2.8, 14.0)
    assert [gate.what for gate in gates.values() if not gate.holds] == []
    assert len(gates) == 13


@pytest.mark.parametrize(
    ("figures", "missed"),
    [
        ((29_000, 2.8, 14.0), 1),  # registrations
        ((30_000, 2.9, 14.0), 2),  # p99 at the fixed rate
        ((30_000, 2.8, 14.2), 2),  # CPU time at the fixed rate
        ((30_000, 2.8, 18.1), 3),  # and beside the peer, with the codec in C
        ((30_000, 2.8, 20.1), 9),  # and beside Kafka, at each number of connections
        ((30_000, 2.8, 26.1), 10),  # and beside the peer, in pure Python
    ],
)
def test_controller_that_is_a_little_worse_misses_them(figures: tuple[float, float, float], missed: int) -> None:
    gates = controller_gates(*figures)
    assert sum(not gate.holds for gate in gates.values()) == missed


def test_bounds_of_a_codec_that_is_not_installed_are_missed() -> None:
    gates = controller_gates(90_000, 0.1, 1.0, with_speed=False)
    missing = [gate for gate in gates.values() if gate.measured == "mockraft-speed is not installed"]
    assert len(missing) == 7
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
