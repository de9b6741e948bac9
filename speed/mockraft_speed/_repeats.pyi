from collections.abc import Callable, Iterator
from typing import Any

class Ring:
    """The entries of a journal, with repeated exchanges that are made when they are read."""

    entries_max: int
    bytes_max: int
    make: Callable[..., Any] | None
    @property
    def bytes_held(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    def __init__(self, entries_max: int, bytes_max: int) -> None: ...
    def append(self, entry: Any, size: int) -> None: ...
    def clear(self) -> None: ...
    def entries(self) -> tuple[Any, ...]: ...
    def __len__(self) -> int: ...

class ShortWay:
    """The callable in place of `mockraft.server.repeats.Repeats.answer`."""

    def __init__(
        self,
        controller: Any,
        connections: dict[int, Any],
        apis: dict[int, Any],
        remembered: dict[bytes, Any],
        stubs: Any,
        responses: Any,
        journal: Any,
        ring: Ring,
        numbers: Iterator[int],
        entry_overhead_bytes: int,
        classes: dict[str, type[Any]],
    ) -> None: ...
    def __call__(self, connection_id: int, data: bytes, now_us: int) -> bytes | None: ...

class Microseconds:
    """A callable that returns the time in microseconds; `epoch_ns` is that at the zero of the monotonic clock."""

    def __init__(self, epoch_ns: int) -> None: ...
    def __call__(self) -> int: ...

class Receiver:
    """The callable in place of `mockraft.server.epoll.receiver.PureReceiver`."""

    def __init__(
        self,
        epoll_fd: int,
        transports: list[Any],
        listener: Any,
        faults: Any,
        now_us: Callable[[], int],
        time: Callable[[], float],
        classes: dict[str, type[Any]],
    ) -> None: ...
    def __call__(self) -> None: ...
