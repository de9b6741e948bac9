"""One controller's own ids, epochs and offsets, and the names for them that both controllers share."""

from __future__ import annotations

import base64
import hashlib
import re
from bisect import bisect_left
from typing import Any, NamedTuple

from mockraft.conformance.forwarding import LOOPBACK
from mockraft.conformance.requests import Tree
from mockraft.wire import uuids
from mockraft.wire.connection import write_request
from mockraft.wire.json_form import from_json, to_json
from mockraft.wire.message import Message
from mockraft.wire.messages.envelope_request import EnvelopeRequest
from mockraft.wire.principals import write_principal

from .model import Model
from .steps import FuzzStep, replaced, request_class

_SYMBOL = re.compile(r"\$([a-zA-Z]+)(?::([^+]*?))?([+-]\d+)?")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")
_EPOCH_IN_TEXT = re.compile(r"(?<=epoch )\d+")
_PRINTED_REQUEST = re.compile(r"Request\(.*\)(?= needs )")
_EPOCHS = {"brokerEpoch", "previousBrokerEpoch", "finalizedFeaturesEpoch"}
_TIMES = {"issueTimestampMs", "expiryTimestampMs", "maxTimestampMs", "issueTimestamp", "expirationTimestamp",
          "maxTimestamp", "lastFetchTimestamp", "lastCaughtUpTimestamp"}  # fmt: skip
_PRODUCER_IDS = {"producerIdStart", "nextProducerId"}
_OWN = {"clusterId", "logEndOffset", "highWatermark", "replicaDirectoryId"}
_INT64 = 1 << 63


class NamedRecord(NamedTuple):
    """A record of the log in shared names."""

    kind: str
    version: int
    fields: Tree


class Names:
    """Names learned from one controller's log and responses; `model` is the world that its log describes.

    `salt` makes log directories new, `hmacs` are those of its delegation tokens in order. `node_id` and
    `incarnation_id` are those of the controller itself.
    """

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.own_texts = {cluster_id: "$cluster"} if cluster_id else {}
        self.node_id = -1
        self.incarnation_id = ""
        self.port = -1
        self.salt = ""
        self.model = Model()
        self.hmacs: list[str] = []
        self._offsets: list[int] = []
        self._ids: dict[str, str] = {}
        self._topic_ids: dict[str, str] = {}
        self._drawn: dict[str, str] = {}
        self._producer_id_base = self._next_producer_id = 0

    def begin(self) -> None:
        """Restart the numbering of records, topics, tokens and producer ids."""
        self.hmacs.clear()
        for each in (self._offsets, self._ids, self._topic_ids, self._drawn):
            each.clear()
        self.model.record_count = 0
        self.model.tokens.clear()
        self._producer_id_base = self._next_producer_id

    def take(self, record: Message, version: int, offset: int) -> NamedRecord | None:
        """Learn from the log's next record; return it in shared names, None to ignore it."""
        name = type(record).__name__
        if name == "NoOpRecord":
            return None
        tree: Tree = to_json(record, version)
        if name == "RegisterControllerRecord" and tree["incarnationId"] == self.incarnation_id:
            # A controller registers itself again some time after another has taken its place.
            self.model.controllers[self.node_id] = self.named(tree)
            return None
        self._offsets.append(offset)
        if name == "TopicRecord":
            self._ids[tree["topicId"]] = f"topic {tree['name']} {len(self._ids)}"
            self._topic_ids[tree["name"]] = tree["topicId"]
        if name == "AccessControlEntryRecord":
            self._ids[tree["id"]] = f"acl {len(self._ids)}"
        if name == "ProducerIdsRecord":
            self._next_producer_id = tree["nextProducerId"]
        tree = self.named(tree)
        self.model.take(name, tree)
        return NamedRecord(name, version, tree)

    def request_of(self, step: FuzzStep) -> tuple[Message, int]:
        """Return the step's request, with this controller's own ids, epochs and offsets, and its version."""
        body = replaced(step.body, self._resolved)
        message = from_json(request_class(step.api), body, step.version)
        if step.principal is None:
            return message, step.version
        envelope = EnvelopeRequest(
            request_data=write_request(message, step.version, 0, "fuzz")[4:],
            request_principal=write_principal(step.principal),
            client_host_address=LOOPBACK,
        )
        return envelope, 0

    def named(self, tree: Any, key: str = "") -> Any:
        """Return the JSON with this side's own ids, epochs and times replaced by shared names."""
        if isinstance(tree, dict):
            return {name: self.named(value, name) for name, value in tree.items()}
        if isinstance(tree, list):
            return [self.named(value, key) for value in tree]
        if isinstance(tree, str):
            return self._named_text(tree, key)
        if key in _EPOCHS and isinstance(tree, int):
            return self._epoch(tree)
        if key in _TIMES:
            return "time" if tree > 0 else tree
        if key in _PRODUCER_IDS:
            return tree - self._producer_id_base if tree > 0 else tree
        return "own" if key in _OWN or (key == "port" and tree == self.port) else tree

    def _named_text(self, text: str, key: str) -> str:
        if key in _OWN:
            return "own"
        if key in {"tokenId", "hmac"} and text:
            return self._drawn.setdefault(text, f"{key} {len(self._drawn)}")
        for own, name in self.own_texts.items():
            text = text.replace(own, name)
        text = _PRINTED_REQUEST.sub("a request", text)
        if "epoch" in text:
            text = _EPOCH_IN_TEXT.sub(lambda found: str(self._epoch(int(found.group()))), text)
        return _UUID.sub(lambda found: self._ids.get(found.group(), found.group()), text)

    def _epoch(self, value: int) -> str | int:
        index = bisect_left(self._offsets, value)
        return f"record {index}" if index < len(self._offsets) and value > 0 else "offset" if value > 0 else value

    def _resolved(self, text: str) -> str | int:
        found = _SYMBOL.fullmatch(text)
        if found is None:
            # Ids of topics may be where other ids are expected, and come back as what both sides call them.
            return next((own for own, name in self._ids.items() if name == text), text) if " " in text else text
        kind, name, sum_text = found.groups()
        number = int(sum_text or 0)
        if kind == "cluster":
            return self.cluster_id
        if kind == "topic":
            return self._topic_ids.get(name or "") or uuids.text_of(hashlib.md5((name or "").encode()).digest())
        if kind == "hmac":
            index = int(name or 0)
            return self.hmacs[index] if index < len(self.hmacs) else base64.b64encode(bytes(64)).decode()
        if kind == "dir":
            return self._directory(text)
        if kind == "end":
            # One record back is one offset less only without NoOpRecords, so it is counted in records.
            index = len(self._offsets) - 1 + number
            return self._offsets[index] if 0 <= index < len(self._offsets) else number
        if kind in {"epoch", "registered"}:
            known = self.model.record_index(kind, int(name or 0))
            return (0 if known is None else self._offsets[known]) + number
        return (self.model.partition_number(kind, name or "") + number + _INT64) % (2 * _INT64) - _INT64

    def _directory(self, symbol: str) -> str:
        """Return a log directory's id: new in each run, with the same order among others in each."""
        order = hashlib.md5(symbol.encode()).digest()[:4]
        text = uuids.text_of(order + hashlib.md5(f"{self.salt} {symbol}".encode()).digest()[:12])
        self._ids[text] = symbol
        return text
