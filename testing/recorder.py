"""Recordings of the admin API: proxies in its event loop that keep the traffic in memory."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from mockraft.kafka_api.journal import Exchange as Entry
from mockraft.server.admin.recorder import LeftOut, RecordedStubs, RecordingView, StubChoice
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.recorded_exchanges import RecordedExchanges
from mockraft.spark_replay.recorded_stubs import MatchedFields, stubs_of
from mockraft.spark_replay.recording import Filter
from mockraft.spark_replay.recording_proxy import RecordingProxy
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire import api_keys
from mockraft.wire.connection import endpoint_of

RECORDINGS_MAX = 4
UPSTREAMS_MAX = 16
RECORDING_BYTES_MAX = 16_777_216
"""Maximum number of bytes that a recording keeps; later traffic is still forwarded."""

EXCHANGES_MAX = 10_000
"""Maximum number of exchanges of a recording from which stubs are made: the first ones."""

EVENTS_HELD = 20


@dataclass(slots=True)
class _Held:
    """One recording."""

    id: str
    upstream: str
    choice: StubChoice
    recorded: RecordedExchanges
    proxy: RecordingProxy
    events: deque[str]
    running: bool = True

    def view(self) -> RecordingView:
        recorded = self.recorded
        return RecordingView(
            id=self.id,
            upstream=self.upstream,
            bootstrap=self.proxy.bootstrap,
            running=self.running,
            connections=recorded.connections,
            requests=recorded.requests,
            answers=recorded.responses,
            by_api={api_keys.name(key): count for key, count in recorded.by_api.items()},
            bytes=recorded.bytes_kept,
            ended=recorded.ended,
            events=list(self.events),
        )


class LocalRecorder:
    """Recordings of controllers, at most RECORDINGS_MAX at once; see `server.admin.recorder.Recorder`."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._show_secrets = show_secrets
        self._held: dict[str, _Held] = {}
        self._made = 0
        self._starting = 0

    async def start(self, upstream: str, listen: str, choice: StubChoice) -> RecordingView:
        """Start a recording.

        Raises ValueError (the text begins with the field), RuntimeError if there are too many, and OSError.
        """
        upstreams = [_endpoint(text.strip(), "upstream") for text in upstream.split(",")]
        if len(upstreams) > UPSTREAMS_MAX or len(set(upstreams)) < len(upstreams):
            raise ValueError(f"upstream: up to {UPSTREAMS_MAX} controllers, each once")
        host, port = _listen_address(listen)
        kept = _filter(choice)
        if len(self._held) + self._starting >= RECORDINGS_MAX:
            raise RuntimeError(f"there are already {RECORDINGS_MAX} recordings, the maximum: DELETE one")
        self._made += 1
        recording_id = f"recording-{self._made}"
        events: deque[str] = deque(maxlen=EVENTS_HELD)
        recorded = RecordedExchanges(bytes_max=RECORDING_BYTES_MAX, exchanges_max=EXCHANGES_MAX, kept=kept)
        proxy = RecordingProxy(recorded, upstreams, host=host, port=port, on_event=events.append)
        self._starting += 1
        try:
            await proxy.start()
        except (OSError, OverflowError, ValueError) as error:
            await proxy.close()
            raise OSError(f"cannot listen on {listen}: {error}") from error
        finally:
            self._starting -= 1
        held = self._held[recording_id] = _Held(recording_id, upstream, choice, recorded, proxy, events)
        return held.view()

    def recordings(self) -> list[RecordingView]:
        """Return all recordings, the oldest first."""
        return [held.view() for held in self._held.values()]

    def recording(self, recording_id: str) -> RecordingView:
        """Return one recording. Raises KeyError."""
        return self._get(recording_id).view()

    async def stubs(self, recording_id: str) -> RecordedStubs:
        """Return the stubs of the traffic so far. Raises KeyError."""
        held = self._get(recording_id)
        not_kept = Counter(held.recorded.not_kept)
        found = await asyncio.to_thread(self._chosen, list(held.recorded.exchanges), held.choice)
        why = f"after the first {EXCHANGES_MAX} exchanges"
        found.left_out.extend(LeftOut(api_keys.name(key), why, count) for key, count in not_kept.items())
        return found

    async def stop(self, recording_id: str) -> None:
        """Close the listeners and connections of a recording; its traffic stays. Raises KeyError."""
        held = self._get(recording_id)
        if held.running:
            held.running = False
            await held.proxy.close()

    async def remove(self, recording_id: str) -> None:
        """Stop and remove a recording. Raises KeyError."""
        await self.stop(recording_id)
        self._held.pop(recording_id, None)

    async def stubs_of(self, exchanges: Sequence[Entry], choice: StubChoice) -> RecordedStubs:
        """Return the stubs of a journal's exchanges. Raises ValueError; its text begins with the field."""
        _filter(choice)
        entries = sorted(exchanges, key=lambda entry: entry.id)
        return await asyncio.to_thread(self._chosen, [_as_captured(each) for each in entries], choice)

    async def close(self) -> None:
        """Remove all recordings."""
        for recording_id in list(self._held):
            await self.remove(recording_id)

    def _chosen(self, exchanges: Sequence[Captured], choice: StubChoice) -> RecordedStubs:
        return chosen_stubs(exchanges, choice, show_secrets=self._show_secrets)

    def _get(self, recording_id: str) -> _Held:
        held = self._held.get(recording_id)
        if held is None:
            there = ", ".join(self._held) or "none"
            raise KeyError(f"there is no recording {recording_id!r}; there are: {there}")
        return held


def _endpoint(text: str, field: str) -> Endpoint:
    try:
        return Endpoint(*endpoint_of(text))
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _listen_address(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"listen: {text!r} is not ADDRESS:PORT, like 127.0.0.1:0") from None
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65_536):
        raise ValueError(f"listen: {port!r} is not a port; 0 is any free one")
    if address.is_unspecified:
        raise ValueError(f"listen: brokers cannot connect to {host}: use an address of this host")
    return Endpoint(host, int(port))


def _filter(choice: StubChoice) -> Filter:
    try:
        return Filter.parse(choice.filters)
    except ValueError as error:
        raise ValueError(f"filters: {error}") from None


def chosen_stubs(exchanges: Sequence[Captured], choice: StubChoice, *, show_secrets: bool = False) -> RecordedStubs:
    """Return the stubs of exchanges. Raises ValueError for an unknown API."""
    found = stubs_of(
        exchanges,
        kept=_filter(choice),
        scopes=[name for name, left in (("version", choice.any_version), ("clientId", choice.any_client)) if not left],
        fields=MatchedFields(choice.only, choice.ignore),
        repeats_as_scenarios=choice.repeats_as_scenarios,
        show_secrets=show_secrets,
    )
    return RecordedStubs(found.stubs, [LeftOut(api, why, count) for (api, why), count in found.left_out.items()])


def _as_captured(entry: Entry) -> Captured:
    """Return a journal entry as an exchange; its number takes the place of times, which are used for sorting."""
    ends = (entry.peer_address, 0, "", entry.node_id)
    header = (entry.api_key, entry.api_version, entry.correlation_id, None)
    response = entry.response_frame[4:] if entry.response_frame else None
    numbers = (entry.id, None if response is None else entry.id)
    return Captured(entry.id, entry.connection_id, 1, *ends, *header, *numbers, *numbers, entry.request_frame, response)
