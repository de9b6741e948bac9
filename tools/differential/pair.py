"""Two controllers that receive the same requests."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
from collections.abc import Iterator

from mockraft.conformance.target import look_up
from mockraft.wire import uuids
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from mockraft.wire.topic_names import CLUSTER_METADATA

from .comparison import Divergence, difference, image_difference
from .emptying import empty, wait_until_published
from .model import Model
from .side import RequestEffect, Side
from .steps import FuzzStep, api_name

LEADERSHIP = "leadership"
READ_ONLY = ("Describe", "List", "ApiVersions")
START_S = 20
CONTROLLERS_REGISTER = 15
SETTLE_S = 2.0
SETTLE_POLL_S = 0.01


@contextlib.contextmanager
def pair_of(bootstrap: str, against: str) -> Iterator[Pair]:
    """Yield two new controllers, each at host:port, which are emptied unless an error ends the block.

    Raises CannotConnectError if there is none, ValueError for one that is not new.
    """
    with contextlib.ExitStack() as stack:
        sides = []
        for name, address in (("the first", bootstrap), ("the second", against)):
            cluster_id = asyncio.run(look_up(address)).cluster_id
            sides.append(stack.enter_context(contextlib.closing(Side(name, address, cluster_id))))
        pair = Pair(*sides)
        yield pair
        pair.end()


class Pair:
    """Two controllers that receive the same requests."""

    def __init__(self, one: Side, other: Side) -> None:
        self.one, self.other = one, other
        self.runs = 0
        offers = [side.request(ApiVersionsRequest(client_software_name="fuzz", client_software_version="1"), 4)
                  for side in (one, other)]  # fmt: skip
        apis = [{each.api_key: (each.min_version, each.max_version) for each in offer.api_keys} for offer in offers]
        self.versions = {
            api_name(key): (max(low, apis[1][key][0]), min(high, apis[1][key][1]))
            for key, (low, high) in apis[0].items()
            if key in apis[1]
        }
        features = [{f.name: (f.min_version, f.max_version) for f in offer.supported_features} for offer in offers]
        self.features = {name: levels for name, levels in features[0].items() if name in features[1]}
        self.beginning = []
        for side in (one, other):
            wait_for_registration(side)
            if side.model.brokers or side.model.topics:
                raise ValueError(f"{side.name} is not new: the fuzz needs controllers without brokers and topics")
            learn_voters(side)
            self.beginning.append((dict(side.model.features), copy.deepcopy(side.model.configs)))

    @property
    def model(self) -> Model:
        """The world as the first side's log describes it."""
        return self.one.model

    def begin(self, seed: int) -> None:
        """Reset to an empty world with new directories."""
        self.runs += 1
        for side, (features, settings) in zip((self.one, self.other), self.beginning, strict=True):
            empty(side, self.features, features, settings)
            side.salt = f"{seed} {self.runs}"

    def end(self) -> None:
        """Remove everything, as far as a controller allows it."""
        for side, (features, settings) in zip((self.one, self.other), self.beginning, strict=True):
            with contextlib.suppress(RuntimeError, OSError):
                empty(side, self.features, features, settings)

    def take(self, step: FuzzStep) -> Divergence | None:
        """Send the step to both and apply the records to the model; return the first difference, if any."""
        sides = (self.one, self.other)
        for each in (step, *step.cleanup):
            terms = [side.control_batches for side in sides]
            outcomes = self._outcomes(each)
            found = difference(each, *outcomes, self.model)
            led = [
                "kept" if side.control_batches == term else "given up" for side, term in zip(sides, terms, strict=True)
            ]
            if "given up" in led:
                return Divergence(each.api, LEADERSHIP, *led)
            if found is not None and each.api.startswith(READ_ONLY):
                found = self._settled(each, found)
            if found is not None:
                return found
            for side, outcome in zip(sides, outcomes, strict=True):
                wait_until_published(side, outcome.records)
        return None

    def unlike_images(self) -> Divergence | None:
        """Return the first difference between what the two logs describe that lasts, as each may write a little later.

        A step's records were compared with the step: this finds what came afterwards, or came too late.
        """
        deadline = time.monotonic() + SETTLE_S
        while True:
            for side in (self.one, self.other):
                side.new_records()
            found = image_difference(self.one.model, self.other.model)
            if found is None or time.monotonic() > deadline:
                return found
            time.sleep(SETTLE_POLL_S)

    def _settled(self, step: FuzzStep, found: Divergence) -> Divergence | None:
        """Return the lasting difference: a controller may describe an image that lags behind the log."""
        deadline = time.monotonic() + SETTLE_S
        again: Divergence | None = found
        while again is not None and time.monotonic() < deadline:
            time.sleep(SETTLE_POLL_S)
            again = difference(step, *self._outcomes(step), self.model)
        return again

    def _outcomes(self, step: FuzzStep) -> tuple[RequestEffect, RequestEffect]:
        """Send the step to both; return both outcomes."""
        for side in (self.one, self.other):
            side.send(step)
        return self.one.receive(step), self.other.receive(step)


def learn_voters(side: Side) -> None:
    """Learn the directory ids of the quorum's voters, which are the side's own."""
    topic = TopicData(topic_name=CLUSTER_METADATA, partitions=[PartitionData(partition_index=0)])
    voters = side.request(DescribeQuorumRequest(topics=[topic]), 2).topics[0].partitions[0].current_voters
    for voter in voters:
        side.own_texts[uuids.text_of(voter.replica_directory_id)] = f"directory of {voter.replica_id}"


def wait_for_registration(side: Side) -> None:
    """Wait until Kafka's controller has registered itself, some time after it responds, from 3.7-IV0 on."""
    deadline = time.monotonic() + START_S
    while True:
        side.new_records()
        level = side.model.features.get("metadata.version", 0)
        if side.model.controllers or 0 < level < CONTROLLERS_REGISTER:
            side.node_id = min(side.model.controllers, default=-1)
            if side.model.controllers:
                own = side.model.controllers[side.node_id]
                side.incarnation_id = own["incarnationId"]
                side.own_texts[side.incarnation_id] = "own incarnation"
                side.model.controllers[side.node_id] = side.named(own)
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{side.name} has not registered itself within {START_S} s")
        time.sleep(SETTLE_POLL_S)
