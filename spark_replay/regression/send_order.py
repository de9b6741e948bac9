"""Plan the order of a session's requests: what to send, and when the capture allows it.

A session is read twice and never held in memory: once to collect what must be known beforehand (`survey`), then step by
step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mockraft.releases import SUPPORTED, release
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.captured_log import CapturedLog
from mockraft.spark_replay.regression.classes import NOT_SENT
from mockraft.wire import api_keys, messages
from mockraft.wire.connection import Request
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message

METADATA_VERSION = "metadata.version"
ABSENCE_NS_MAX = 11_000_000_000
"""The longest time to wait for the end of a broker's session.

More than Kafka's default broker.session.timeout.ms and an eighth of it, as sessions are checked eight times in that.
"""

CAUSAL, PACED = "causal", "paced"
ORDERS = {
    CAUSAL: "a request waits for every response that preceded it in the capture",
    PACED: "causal, at the capture's pace or a multiple of it",
}
"""The orders of sending, by the names of `--order`."""


class RequestToSend(NamedTuple):
    """One decoded request to send.

    `is_last`: the connection can be closed after it. `paced`: when a broker went away and how long ago that is, in ns;
    even at full speed that much time must pass, so that its session expires in the replay as well.
    """

    captured: Captured
    request: Request
    body: Message
    response: Message
    is_last: bool
    paced: tuple[int, int] | None


class Survey:
    """Facts about a session that are needed before its first request is sent.

    Costs a few numbers for each connection, topic and absence of a broker, whatever the number of exchanges.
    """

    def __init__(self, kept: Filter | None = None) -> None:
        self.kept = kept or Filter()
        self.log = CapturedLog()
        self.cluster_ids: Counter[str] = Counter()
        self.node_ids: Counter[int] = Counter()
        self.metadata_version: int | None = None
        self.release: str | None = None
        self.last: dict[tuple[int, int], int] = {}
        self.first_ns = 0
        self.exchanges = 0
        self._heartbeats_ns: dict[int, int] = {}
        self._gaps: list[tuple[int, int]] = []
        self.absences: list[tuple[int, int]] = []

    @property
    def cluster_id(self) -> str | None:
        """The cluster id of most requests; a wrong id in a few of them stays wrong."""
        return self.cluster_ids.most_common(1)[0][0] if self.cluster_ids else None

    @property
    def node_id(self) -> int | None:
        """The captured controller's id, if a response contains it."""
        return self.node_ids.most_common(1)[0][0] if self.node_ids else None

    def see(self, captured: Captured) -> None:
        """Add one exchange, in the order of sending."""
        self.exchanges += 1
        if captured.request is None or not self.kept.keeps(captured.api_key):
            return
        self.first_ns = self.first_ns or captured.request_ts_ns
        self.last[captured.connection] = captured.number
        key = captured.api_key
        try:
            if key in _SURVEYED:
                self._see_request(captured, captured.read_request()[1])
            if key in _SURVEYED_ANSWERS and captured.response is not None:
                self._see_response(captured.read_response())
        except WireError:
            return

    def finish(self) -> None:
        """Finish after all exchanges were added."""
        for start_ns, end_ns in sorted(self._gaps):
            if self.absences and self.absences[-1][1] >= start_ns:
                self.absences[-1] = self.absences[-1][0], max(end_ns, self.absences[-1][1])
            else:
                self.absences.append((start_ns, end_ns))

    def paced(self, sent_ns: int) -> tuple[int, int] | None:
        """Return the start of the last absence before that time, and how much of it had passed by then."""
        away = bisect_left(self.absences, (sent_ns, 0))
        if not away:
            return None
        start_ns, end_ns = self.absences[away - 1]
        return start_ns, min(sent_ns, end_ns) - start_ns

    def _see_request(self, captured: Captured, body: Message) -> None:
        if cluster_id := getattr(body, "cluster_id", None):
            self.cluster_ids[cluster_id] += 1
        if isinstance(body, messages.BrokerHeartbeatRequest):
            self._heartbeats_ns[body.broker_id] = captured.request_ts_ns
        elif isinstance(body, messages.BrokerRegistrationRequest) and body.broker_id in self._heartbeats_ns:
            start_ns = self._heartbeats_ns[body.broker_id]
            self._gaps.append((start_ns, min(captured.request_ts_ns, start_ns + ABSENCE_NS_MAX)))

    def _see_response(self, response: Message) -> None:
        if isinstance(response, messages.FetchResponse):
            self.log.read(response)
            for partition in (partition for topic in response.responses for partition in topic.partitions):
                if partition.current_leader.leader_id >= 0:
                    self.node_ids[partition.current_leader.leader_id] += 1
        elif isinstance(response, messages.ApiVersionsResponse) and self.metadata_version is None:
            for finalized in response.finalized_features:
                if finalized.name == METADATA_VERSION:
                    self.metadata_version = finalized.max_version_level
            for supported in response.supported_features:
                if supported.name == METADATA_VERSION:
                    self.release = _release_of(supported.max_version)


def _release_of(metadata_version: int) -> str | None:
    """Return the name of the release whose newest metadata.version this is."""
    known = map(release, SUPPORTED)
    return next((each.name for each in known if max(each.metadata_versions) == metadata_version), None)


_SURVEYED = frozenset(
    {api_keys.FETCH, api_keys.BROKER_REGISTRATION, api_keys.BROKER_HEARTBEAT, api_keys.FETCH_SNAPSHOT}
)
_SURVEYED_ANSWERS = frozenset({api_keys.FETCH, api_keys.API_VERSIONS})


def survey(exchanges: Iterable[Captured], kept: Filter | None = None) -> Survey:
    """Collect what must be known beforehand, in one pass."""
    found = Survey(kept)
    for captured in exchanges:
        found.see(captured)
    found.finish()
    return found


def steps(exchanges: Iterable[Captured], known: Survey) -> Iterator[RequestToSend | tuple[Captured, str]]:
    """Yield what to send, in the capture's order; exchanges that are left out come with the reason."""
    for captured in exchanges:
        read = read_exchange(captured, known.kept)
        if isinstance(read, str):
            yield captured, read
        else:
            is_last = known.last.get(captured.connection) == captured.number
            yield RequestToSend(captured, *read, is_last, known.paced(captured.request_ts_ns))


def read_exchange(captured: Captured, kept: Filter) -> tuple[Request, Message, Message] | str:
    """Return header, request body and response body of an exchange, or the reason to leave it out."""
    if captured.request is None:
        return "no request in the capture"
    if captured.response is None:
        return "no answer in the capture"
    if captured.api_key in NOT_SENT:
        return NOT_SENT[captured.api_key]
    if not kept.keeps(captured.api_key):
        return "--filter"
    try:
        header, body = captured.read_request()
        return header, body, captured.read_response()
    except WireError as error:
        return f"cannot be read: {error}"
