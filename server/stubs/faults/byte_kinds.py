"""Kinds of faults that are toxics of connections' bytes, with toxiproxy's names where it has them."""

from mockraft.server.stubs.faults import toxics
from mockraft.server.stubs.faults.kinds import Kind, Parameter

UPSTREAM, DOWNSTREAM, BOTH = "upstream", "downstream", "both"


def _direction(default: str = DOWNSTREAM) -> Parameter:
    text = "downstream is from the controller to the client, upstream the other way"
    return Parameter("direction", "choice", default, text, (UPSTREAM, DOWNSTREAM, BOTH))


def _number(
    name: str, default: float, text: str, drawn: tuple[float, float], minimum: float = 0, grows: bool = False
) -> Parameter:
    return Parameter(name, "int", default, text, minimum=minimum, grows=grows, drawn=drawn)


def _probability(default: float, text: str) -> Parameter:
    drawn = (0.0005, 0.01)
    return Parameter("probability", "float", default, text, minimum=0, maximum=1, grows=True, drawn=drawn)


BYTE_KINDS = (
    Kind(
        "latency",
        "Everything arrives later, in order.",
        (
            _direction(),
            _number("latency_ms", 100, "delay in milliseconds", (50, 1_000), grows=True),
            _number(
                "jitter_ms", 0, "random difference of the delay, plus or minus, in milliseconds", (0, 200), grows=True
            ),
        ),
        toxic=toxics.Latency,
    ),
    Kind(
        "bandwidth",
        "The bandwidth of the line is limited.",
        (_direction(), _number("bytes_per_second", 10_000, "bytes a second", (1_000, 100_000), 1)),
        toxic=toxics.Bandwidth,
    ),
    Kind(
        "slow_close",
        "The end of a connection arrives late.",
        (_direction(), _number("delay_ms", 1_000, "delay in milliseconds", (100, 2_000), grows=True)),
        toxic=toxics.SlowClose,
    ),
    Kind(
        "half_open",
        "Connections are accepted and read, but never answered; those that lost bytes are closed when the fault ends.",
        (
            _direction(BOTH),
            _number("timeout_ms", 0, "milliseconds until the connection is closed; 0: never", (0, 5_000)),
        ),
        toxic=toxics.HalfOpen,
    ),
    Kind(
        "reset_peer",
        "Connections are broken with a TCP RST.",
        (_number("timeout_ms", 0, "milliseconds until the RST", (0, 1_000)),),
        toxic=toxics.ResetPeer,
    ),
    Kind(
        "slicer",
        "Bytes arrive in small pieces.",
        (
            _direction(),
            _number("average_size", 64, "bytes of a piece", (1, 256), 1),
            _number("size_variation", 0, "random difference of a piece, plus or minus, in bytes", (0, 32)),
            _number("delay_ms", 0, "milliseconds between two pieces", (0, 5), grows=True),
        ),
        toxic=toxics.Slicer,
    ),
    Kind(
        "limit_data",
        "Connections are closed after a number of bytes, possibly in the middle of a frame.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=toxics.LimitData,
    ),
    Kind(
        "truncate",
        "After a number of bytes nothing more arrives; connections stay open until the fault ends.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=toxics.Truncate,
    ),
    Kind(
        "corrupt",
        "Bytes are changed: each n-th, or each with a probability.",
        (
            _direction(),
            _probability(0.001, "probability for each byte"),
            Parameter("every_nth", "int", 0, "change each n-th byte, in place of a probability; 0: off", minimum=0),
        ),
        toxic=toxics.Corrupt,
    ),
    Kind(
        "duplicate",
        "Everything that is written at once (downstream: an answer) arrives twice.",
        (_direction(), _probability(1.0, "probability for each write")),
        toxic=toxics.Duplicate,
    ),
    Kind("down", "Connections break, and new ones break at once.", (), toxic=toxics.Down),
)
