"""Translate captured requests for the live controller: ids, epochs, positions in the log."""

from __future__ import annotations

from mockraft.spark_replay.regression.captured import read_frame
from mockraft.spark_replay.regression.captured_log import LogReaders
from mockraft.spark_replay.regression.diff import Difference, diff
from mockraft.spark_replay.regression.renaming import Renaming
from mockraft.spark_replay.regression.rules import Rules
from mockraft.spark_replay.regression.send_order import RequestToSend, Survey
from mockraft.wire import api_keys, messages, record_batch
from mockraft.wire.connection import parse_request, write_request
from mockraft.wire.errors import WireError
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.messages import FetchRequest, FetchResponse

_NO_OP = bytes.fromhex("01140000")


class Translation:
    """Translate requests and compare responses, for one replay."""

    def __init__(self, rules: Rules, known: Survey, *, show_secrets: bool) -> None:
        self.rules = rules
        self.show_secrets = show_secrets
        self.renaming = Renaming()
        self.readers = LogReaders(self.renaming)
        self.log = known.log
        self.last_fetch: tuple[FetchRequest, int] | None = None

    def request(self, step: RequestToSend, *, may_wait: bool) -> Message:
        """Return the request with live ids and epochs; with `may_wait`, a Fetch that waited in vain does so again."""
        key, version = step.request.api_key, step.request.api_version
        body = step.body
        self.renaming.missing.clear()
        if isinstance(body, messages.EnvelopeRequest):
            assert isinstance(step.response, messages.EnvelopeResponse)
            body.request_data = self._inner(bytes(body.request_data), bytes(step.response.response_data or b""))
            return body
        bound = self._bound(body, key, version)
        if isinstance(bound, messages.CreateTopicsRequest):
            assert isinstance(step.response, messages.CreateTopicsResponse)
            self.log.put_replicas(bound, step.response)
        elif isinstance(bound, messages.FetchRequest):
            assert isinstance(step.response, messages.FetchResponse)
            self.readers.bind_fetch(bound)
            self.last_fetch = bound, version
            if not may_wait and not _has_news(step.response):
                bound.max_wait_ms = 0
        elif isinstance(bound, messages.BrokerHeartbeatRequest):
            assert isinstance(body, messages.BrokerHeartbeatRequest)
            self.readers.bind_heartbeat(bound, body.broker_epoch)
        return bound

    def _bound(self, body: Message, key: int, version: int) -> Message:
        node = self.rules.request(key, version)
        return from_json(messages.request(key), self.renaming.bind_tree(to_json(body, version), node), version)

    def _inner(self, data: bytes, captured: bytes) -> bytes:
        header = parse_request(data)
        body = messages.request(header.api_key).read(data[header.body_offset :], header.api_version)
        bound = self._bound(body, header.api_key, header.api_version)
        if isinstance(bound, messages.CreateTopicsRequest) and captured:
            response = read_frame(captured, header.api_key, header.api_version)
            assert isinstance(response, messages.CreateTopicsResponse)
            self.log.put_replicas(bound, response)
        return write_request(bound, header.api_version, header.correlation_id, header.client_id)[4:]

    def differences(self, step: RequestToSend, request: Message, answer: Message) -> list[Difference]:
        """Return the differences from the captured response, including those excused by rules."""
        captured = step.response
        if isinstance(request, messages.FetchRequest):
            assert isinstance(captured, messages.FetchResponse)
            assert isinstance(answer, messages.FetchResponse)
            self.readers.answered(request, captured, answer)
            self.log.learn_topics(answer, self.renaming)
        found = self._compared(step.request.api_key, step.request.api_version, captured, answer)
        if not isinstance(request, messages.EnvelopeRequest):
            return found
        datas = [each.response_data for each in (captured, answer) if isinstance(each, messages.EnvelopeResponse)]
        if not all(datas):
            return found
        header = parse_request(bytes(request.request_data))
        inner = [read_frame(bytes(data or b""), header.api_key, header.api_version) for data in datas]
        name = api_keys.name(header.api_key)
        found = [each for each in found if each.path != "responseData"]
        more = self._compared(header.api_key, header.api_version, *inner)
        return found + [each._replace(path=f"{name}.{each.path}") for each in more]

    def _compared(self, key: int, version: int, captured: Message, live: Message) -> list[Difference]:
        node = self.rules.response(key, version)
        found = diff(to_json(captured, version), to_json(live, version), node, self.renaming)
        return list(found) if self.show_secrets else [each.without_secrets() for each in found]


def _has_news(response: FetchResponse) -> bool:
    """Return True if a Fetch response has other records than NoOpRecords, so that a live Fetch may wait for them."""
    for partition in (partition for topic in response.responses for partition in topic.partitions):
        try:
            batches = list(record_batch.read_batches(bytes(partition.records or b""), allow_partial_tail=True))
        except WireError:
            return True
        if any(value != _NO_OP for batch in batches for _, value in batch.records):
            return True
    return False
