"""A broker's connection to the active controller: reconnects after every failure, one request at a time.

Mirrors Kafka's `NodeToControllerChannelManager` and its request thread: a request waits until a controller is known, is
sent again after a disconnect or NOT_CONTROLLER, and is given up after `retry_timeout_ms`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mockraft.brokers.effects import BreakOff, Link, Versions
from mockraft.brokers.kernel import Kernel, OnFailure, R
from mockraft.brokers.metadata.observer import Endpoint
from mockraft.wire import error_codes
from mockraft.wire.errors import DisconnectedError, WireError

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

RECONNECT_BACKOFF_MS = 50
RETRY_TIMEOUT_MS = 60_000
POLL_MS = 100


class NotSentError(Exception):
    """The retry timeout expired: no controller was known, or none answered."""


class _Waiting(NamedTuple):
    make: Callable[[Versions], Any]
    on_answer: Callable[[Any], None]
    on_failure: OnFailure
    deadline_ms: float


class ControllerChannel:
    """One channel of one broker: `purpose` is Kafka's "heartbeat", "directory-assignments", "forwarding", …

    `find_controller` returns the active controller's endpoint, None while there is none; `client_id` is the broker id
    as text, as on a real broker. Requests wait for the one before.
    """

    def __init__(
        self,
        kernel: Kernel,
        purpose: str,
        client_id: str,
        find_controller: Callable[[], Endpoint | None],
        retry_timeout_ms: int,
    ) -> None:
        self.retry_timeout_ms = retry_timeout_ms
        self._kernel = kernel
        self._purpose = purpose
        self._client_id = client_id
        self._find_controller = find_controller
        self._link: Link | None = None
        self._queue: deque[_Waiting] = deque()
        self._looks_for_controller = False
        self._again = f"{purpose}: again"
        self._deadline = f"{purpose}: deadline"

    @property
    def api_versions(self) -> Versions | None:
        """The API versions of the controller, (min, max) by API key; None without a connection."""
        return None if self._link is None else self._kernel.versions(self._link)

    def controller_moved(self) -> None:
        """Wake a request that waits for a controller."""
        if self._looks_for_controller:
            self._try()

    def send(
        self, make: Callable[[Versions], RequestMessage[R]], on_answer: Callable[[R], None], on_failure: OnFailure
    ) -> None:
        """Send the request that `make` builds for the versions of the controller; it is built anew for each try.

        Retries NOT_CONTROLLER and disconnects; `on_failure` gets NotSentError, UnsupportedVersionError, WireError.
        """
        self._queue.append(_Waiting(make, on_answer, on_failure, self._kernel.now_ms + self.retry_timeout_ms))
        if len(self._queue) == 1:
            self._begin()

    def break_off(self) -> None:
        """Cut the connection, as a network failure does."""
        if self._link is not None:
            self._kernel.emit(BreakOff(self._link))

    def close(self) -> None:
        """Drop the connection; the next request opens a new one."""
        link, self._link = self._link, None
        if link is not None:
            self._kernel.disconnect(link)

    def _begin(self) -> None:
        """Send the next request. The deadline of one that was answered stays until then."""
        self._kernel.after(self._deadline, self._queue[0].deadline_ms - self._kernel.now_ms, self._give_up)
        self._try()

    def _try(self) -> None:
        self._looks_for_controller = False
        kernel = self._kernel
        if self._link is None or kernel.versions(self._link) is None:
            endpoint = self._find_controller()
            if endpoint is None:
                self._looks_for_controller = True
                kernel.after(self._again, POLL_MS, self._try)
                return
            kernel.cancel(self._again)
            self._link = Link(self._purpose, self._client_id, *endpoint, self.retry_timeout_ms)
        kernel.request(self._link, self._queue[0].make, self._answered, self._failed)

    def _answered(self, response: Any) -> None:
        # A response without an error for the whole (CreateTopics) is the caller's.
        if getattr(response, "error_code", error_codes.NONE) == error_codes.NOT_CONTROLLER:
            self._try_again()
        else:
            self._take().on_answer(response)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, DisconnectedError):
            self._try_again()
            return
        if isinstance(error, WireError):
            self.close()
        self._take().on_failure(error)

    def _try_again(self) -> None:
        self.close()
        self._kernel.after(self._again, RECONNECT_BACKOFF_MS, self._try)

    def _give_up(self) -> None:
        if not self._queue:
            return
        self.close()
        self._kernel.cancel(self._again)
        self._looks_for_controller = False
        late = NotSentError(f"no response from a controller within {self.retry_timeout_ms} ms")
        self._take().on_failure(late)

    def _take(self) -> _Waiting:
        """Remove the request that has an outcome, and begin with the next."""
        done = self._queue.popleft()
        if self._queue:
            self._begin()
        return done
