"""The requests of an observer: chooses the node and time of the next one.

Kafka's raft channel keeps one connection per node and treats a bootstrap server as a node of its own, so a starting
broker has two: it sends one request to a bootstrap server, learns the leader, and stays with the leader from then on.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from mockraft.brokers.config import BrokerConfig
from mockraft.brokers.effects import Link, Versions
from mockraft.brokers.kernel import Kernel
from mockraft.brokers.metadata.observer import Observer, Outcome
from mockraft.wire import messages, metadata_log_frame
from mockraft.wire.errors import (
    AuthenticationFailedError,
    DisconnectedError,
    SecurityMismatchError,
    UnsupportedVersionError,
)
from mockraft.wire.messages.fetch_response import FetchResponse
from mockraft.wire.messages.fetch_snapshot_response import FetchSnapshotResponse
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.recast import OverlaidRecords

if TYPE_CHECKING:
    from mockraft.wire.message import RequestMessage

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 500
SENT_ON_AT_ONCE = 5
"""Maximum number of successive responses that may each name another leader before the next request is delayed."""
_AGAIN = "metadata log: fetch again"

_log = logging.getLogger(__name__)


class Replication:
    """Runs one observer, one request at a time; `advanced` is called after every processed response.

    Its client id is raft-client-`name`, the broker's id unless given. `fetches` counts responses, `denials` the failed
    logins since the last one, `mismatches` the new connections that were closed at once before any; `note` is the
    reason why the last response was not useful, empty when it was. FatalError and WireError, at which a real broker
    exits, are raised into the kernel.
    """

    def __init__(
        self,
        kernel: Kernel,
        config: BrokerConfig,
        observer: Observer,
        advanced: Callable[[], None],
        name: str | None = None,
    ) -> None:
        self.fetches = self.denials = self.mismatches = 0
        self.note = ""
        self._kernel = kernel
        self._config = config
        self._name = str(config.broker_id) if name is None else name
        self._observer = observer
        self._advanced = advanced
        self._bootstrap = itertools.cycle(config.bootstrap)
        self._epoch = 0
        self._outcome = Outcome()
        self._backoff_ms = RECONNECT_BACKOFF_MS
        self._sent_on = 0

    def start(self) -> None:
        """Begin to fetch."""
        self._fetch()

    def close(self) -> None:
        """Nothing to release: the shell closes the connections of a broker that has ended."""

    def _fetch(self) -> None:
        """Send to the leader while it responds normally, else to a bootstrap server, which may know a newer one."""
        self._epoch = self._observer.epoch
        leader = self._observer.leader if self._outcome.useful else None
        endpoint = leader.endpoint if leader else next(self._bootstrap)
        purpose = f"raft {leader.node_id}" if leader else "raft bootstrap"
        timeout_ms = self._config.raft_request_timeout_ms
        link = Link(purpose, f"raft-client-{self._name}", *endpoint, timeout_ms, shares_ids=True)
        self._kernel.request(link, self._request, self._answered, self._failed, timeout_ms=timeout_ms)

    def _request(self, _: Versions) -> RequestMessage[FetchResponse | FetchSnapshotResponse]:
        # RequestMessage is invariant: a union of requests is none of it.
        return cast("RequestMessage[FetchResponse | FetchSnapshotResponse]", self._observer.request())

    def _answered(self, response: FetchResponse | FetchSnapshotResponse) -> None:
        outcome = self._observer.receive(response)
        self.fetches += 1
        self.denials = self.mismatches = 0
        self._backoff_ms = RECONNECT_BACKOFF_MS
        self._advanced()
        self._continue(outcome)

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, DisconnectedError | UnsupportedVersionError):
            raise error
        self.denials = self.denials + 1 if isinstance(error, AuthenticationFailedError) else 0
        is_mismatch = self.fetches == 0 and isinstance(error, SecurityMismatchError)
        self.mismatches = self.mismatches + 1 if is_mismatch else 0
        outcome = Outcome(False, self._backoff_ms, str(error))
        self._backoff_ms = min(self._backoff_ms * 2, RECONNECT_BACKOFF_MAX_MS)
        self._continue(outcome)

    def _continue(self, outcome: Outcome) -> None:
        self._outcome = outcome
        if outcome.note and outcome.note != self.note:
            _log.warning("broker %s: metadata log: %s", self._name, outcome.note)
        self.note = outcome.note
        self._sent_on = self._sent_on + 1 if self._observer.epoch != self._epoch else 0
        if not outcome.useful:
            self._kernel.after(_AGAIN, outcome.backoff_ms, self._fetch)
        elif self._sent_on > SENT_ON_AT_ONCE:
            # Limits the load when controllers name each other for ever.
            self._kernel.after(_AGAIN, RECONNECT_BACKOFF_MS, self._fetch)
        else:
            self._fetch()


def decoder(config: BrokerConfig) -> Callable[[bytes], RecordAt]:
    """Return the reader of metadata records: that of a proposal for a broker of one."""
    if config.messages is messages:
        return metadata_log_frame.decode
    return OverlaidRecords(config.messages).decode
