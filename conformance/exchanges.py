"""Requests and responses of a case, made comparable: without what differs from run to run, cut, and without secrets.

A run keeps the exchanges of each case as JSON: a request and its answer, or the records that followed. Ids, epochs,
offsets and times get common names, so that runs on two controllers differ where the controllers do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mockraft.conformance.expectation import FirstDifference, NotAsExpectedError, OneOf
from mockraft.conformance.identities import Identities
from mockraft.conformance.requests import Tree, feature_ranges
from mockraft.conformance.target import Target
from mockraft.wire.json_form import Json
from mockraft.wire.redaction.masks import HIDDEN
from mockraft.wire.redaction.messages import without_secrets

TEXT_MAX = 240
ELEMENTS_MAX = 8
_UUID = re.compile(r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])[\w-]{22}(?![\w-])")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,18}(?![\w-]|\.\d)")
_EPOCH_IN_TEXT = re.compile(r"((?:epoch|offset)\w*[\"']?(?: of| is)?[ :=]+)\d+", re.IGNORECASE)
_BYTES = {"records", "unalignedRecords", "requestData", "responseData", "requestPrincipal", "bytes"}
_TIMES = re.compile(r"(?i)timestamp")
_EPOCHS = {"brokerEpoch", "previousBrokerEpoch", "finalizedFeaturesEpoch", "newBrokerEpoch"}
_OFFSETS = re.compile(r"(?i)(offset|highWatermark|position|size)$")
_OF_QUORUM = {"Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum", "AddRaftVoter"}
_NODE_IDS = {"leaderId", "controllerId", "nodeId", "replicaId", "voterId", "brokerId"}
_DROPPED = {"throttleTimeMs"}
_LEAST_MASKED = 2


def masked(story: Sequence[Tree], target: Target, identities: Identities) -> list[Tree]:
    """Return the exchanges of a case with common names; the same exchanges of two runs are then equal."""
    mask = _Mask(target, identities)
    found: list[Tree] = []
    for exchange in map(mask.exchange, story):
        # A read is repeated until the last published image has the answer.
        if found and _is_read(exchange) and _request(found[-1]) == _request(exchange):
            found.pop()
        found.append(exchange)
    return found


class _Mask:
    """Names given so far, in their order of appearance."""

    def __init__(self, target: Target, identities: Identities) -> None:
        self._target = target
        self._token = identities.token
        self._uuids: dict[str, str] = {}
        self._numbers = {
            **{each: str(index) for index, each in enumerate(sorted(identities.broker_ids), 1)},
            target.leader_id: "<controller>",
        }
        self._epochs: dict[int, str] = {}
        self._features = feature_ranges(target.supported_features)

    def exchange(self, exchange: Tree) -> Tree:
        """Return one exchange with common names."""
        api = str(exchange.get("api", "")).partition(" ")[0]
        found = {key: without_secrets(value) for key, value in exchange.items() if key != "api"}
        return {**exchange, **{key: self._tree(value, "", api) for key, value in found.items()}}

    def _tree(self, tree: object, key: str, api: str) -> object:
        if key in _BYTES and isinstance(tree, str):
            return "<bytes>" if tree else tree
        if isinstance(tree, dict):
            return {each: self._tree(value, each, api) for each, value in tree.items() if each not in _DROPPED}
        if isinstance(tree, list):
            return self._list(tree, key, api)
        if isinstance(tree, str):
            return self._text(tree)
        return self._number(tree, key, api) if isinstance(tree, int) and not isinstance(tree, bool) else tree

    def _list(self, tree: list[object], key: str, api: str) -> object:
        if key == "features" and _sorted(tree) == _sorted(self._features):
            return "<those of the controller>"
        found = [self._tree(each, key, api) for each in tree[:ELEMENTS_MAX]]
        more = len(tree) - ELEMENTS_MAX
        return [*found, f"<{more} more>"] if more > 0 else found

    def _text(self, text: str) -> str:
        text = text.replace(self._token, "")
        if self._target.cluster_id:
            text = text.replace(self._target.cluster_id, "<cluster>")
        text = _UUID.sub(lambda found: self._uuids.setdefault(found[0], f"<id {len(self._uuids) + 1}>"), text)
        text = _EPOCH_IN_TEXT.sub(r"\1<number>", text)
        text = _NUMBER.sub(lambda found: self._numbers.get(int(found[0]), found[0]), text)
        return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters)"

    def _number(self, value: int, key: str, api: str) -> object:
        if key in _EPOCHS and value > _LEAST_MASKED:
            return self._epochs.setdefault(value, f"<epoch {len(self._epochs) + 1}>")
        if _TIMES.search(key) and value > _LEAST_MASKED:
            return "<time>"
        if key == "port" and value not in (0, 9092):
            return "<port>"
        if key == "producerIdStart" or (_OFFSETS.search(key) and value > _LEAST_MASKED):
            return "<number>"
        if api in _OF_QUORUM and key.lower().endswith("epoch") and value > 0:
            return "<epoch>"
        if value in self._numbers and (value != self._target.leader_id or key in _NODE_IDS):
            name = self._numbers[value]
            return int(name) if name.isdigit() else name
        return value


def _is_read(exchange: Tree) -> bool:
    return str(exchange.get("api", "")).startswith(("Describe", "List"))


def _request(exchange: Tree) -> tuple[object, object]:
    return exchange.get("api"), exchange.get("request")


def _sorted(features: Sequence[object]) -> list[str]:
    return sorted(map(repr, features))


_STEP = re.compile(r"[^.\[\]]+")


def plain(tree: object) -> Json:
    """Return an expectation as plain JSON."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [plain(each) for each in tree]
    return repr(tree) if isinstance(tree, OneOf) else tree  # type: ignore[return-value]  # as the cases write it


def without_its_secrets(error: NotAsExpectedError) -> NotAsExpectedError:
    """Return the failure with `[hidden]` for secrets in both trees and at the first difference."""
    path = error.first.path
    expected, got = plain(error.expected), plain(error.got)
    hidden_expected, hidden_got = without_secrets(expected), without_secrets(got)
    pairs = ((expected, hidden_expected), (got, hidden_got))
    if any(_at(tree, path) != HIDDEN == _at(found, path) for tree, found in pairs):
        first = FirstDifference(path, HIDDEN, HIDDEN)
    else:
        first = FirstDifference(path, _hidden(error.first.expected), _hidden(error.first.got))
    return NotAsExpectedError(error.what, hidden_expected, hidden_got, first)


def _hidden(value: object) -> object:
    return value if isinstance(value, OneOf) else without_secrets(plain(value))


def _at(tree: Json, path: str) -> Json:
    """Return the value at a path such as `topics[0].errorCode`, None if there is none."""
    found = tree
    for step in _STEP.findall(path):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list):
            index = int(step)
            found = found[index] if index < len(found) else None
        else:
            return None
    return found
