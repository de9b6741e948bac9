"""The kinds of faults that are toxics of connections' bytes, in toxiproxy's words where it has them."""

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
            _number("latency_ms", 100, "milliseconds of delay", (50, 1_000), grows=True),
            _number("jitter_ms", 0, "the delay is up to so many milliseconds more or less", (0, 200), grows=True),
        ),
        toxic=toxics.Latency,
    ),
    Kind(
        "bandwidth",
        "The line carries so many bytes a second.",
        (_direction(), _number("bytes_per_second", 10_000, "bytes a second", (1_000, 100_000), 1)),
        toxic=toxics.Bandwidth,
    ),
    Kind(
        "slow_close",
        "The end of a connection is noticed late.",
        (_direction(), _number("delay_ms", 1_000, "milliseconds of delay", (100, 2_000), grows=True)),
        toxic=toxics.SlowClose,
    ),
    Kind(
        "half_open",
        "Connections are taken and read, and nothing is ever answered. Those that lost bytes are closed when it ends.",
        (
            _direction(BOTH),
            _number("timeout_ms", 0, "milliseconds after which the connection is closed; 0 is never", (0, 5_000)),
        ),
        toxic=toxics.HalfOpen,
    ),
    Kind(
        "reset_peer",
        "Connections are broken by a TCP RST.",
        (_number("timeout_ms", 0, "milliseconds after which it comes", (0, 1_000)),),
        toxic=toxics.ResetPeer,
    ),
    Kind(
        "slicer",
        "Bytes arrive in small pieces.",
        (
            _direction(),
            _number("average_size", 64, "bytes of a piece", (1, 256), 1),
            _number("size_variation", 0, "a piece has up to so many bytes more or less", (0, 32)),
            _number("delay_ms", 0, "milliseconds between two pieces", (0, 5), grows=True),
        ),
        toxic=toxics.Slicer,
    ),
    Kind(
        "limit_data",
        "Connections are closed after so many bytes, in the middle of a frame where they end there.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=toxics.LimitData,
    ),
    Kind(
        "truncate",
        "After so many bytes nothing more arrives, and connections stay open until the fault ends.",
        (_direction(), _number("bytes", 17, "bytes that pass on each connection", (0, 4_096))),
        toxic=toxics.Truncate,
    ),
    Kind(
        "corrupt",
        "Bytes arrive as others: each n-th, or each with a probability.",
        (
            _direction(),
            _probability(0.001, "probability for each byte"),
            Parameter("every_nth", "int", 0, "each n-th byte, in place of a probability; 0 is off", minimum=0),
        ),
        toxic=toxics.Corrupt,
    ),
    Kind(
        "duplicate",
        "What is written at once (an answer, downstream) arrives twice.",
        (_direction(), _probability(1.0, "probability for each write")),
        toxic=toxics.Duplicate,
    ),
    Kind("down", "Connections break, and new ones break at once.", (), toxic=toxics.Down),
)
