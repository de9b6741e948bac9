"""Draws steps: mostly requests that make sense in the world as it is, some of them slightly invalid."""

import random
from collections.abc import Mapping, Sequence

from mockraft.conformance.requests import complete

from . import acl_requests, broker_requests, partition_requests, setting_requests, topic_requests
from .drawn import DRAWINGS, Draw, Drawing
from .known import is_known
from .model import Model
from .mutations import mutated
from .steps import FuzzStep

SLIGHTLY_WRONG = 0.22
FORWARDED = 0.2
FORWARDABLE = {
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs", "ElectLeaders",
    "AlterPartitionReassignments", "ListPartitionReassignments", "AlterClientQuotas", "AlterUserScramCredentials",
    "UpdateFeatures", "UnregisterBroker", "UnregisterController", "AllocateProducerIds", "CreateDelegationToken",
    "RenewDelegationToken", "ExpireDelegationToken", "RemoveRaftVoter", "CreateAcls", "DeleteAcls",
}  # fmt: skip
ALWAYS_FORWARDED = 0.9
TOKENS = {"CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"}
PRINCIPALS = ("User:ann", "User:bob", "User:ANONYMOUS")

Versions = Mapping[str, tuple[int, int]]
DRAWS: list[Drawing] = [
    drawing
    for module in (broker_requests, topic_requests, partition_requests, setting_requests, acl_requests)
    for drawing in DRAWINGS[module.__name__]
]


class Generator:
    """Draws steps for the world of `model`, of the APIs and versions in `versions`; only of `draws`, if any."""

    def __init__(
        self,
        seed: int,
        model: Model,
        versions: Versions,
        features: dict[str, tuple[int, int]],
        draws: Sequence[Drawing] = (),
    ) -> None:
        self.rng = random.Random(seed)
        self.draw = Draw(self.rng, model, features)
        self.versions = versions
        self._draws = [entry for entry in draws or DRAWS if entry[1] in versions]

    def step(self) -> FuzzStep:
        """Draw the next step."""
        while True:
            ((_, api, draw),) = self.rng.choices(self._draws, [weight for weight, _, _ in self._draws])
            body = draw(self.draw)
            if body is None:
                continue
            version = self._version(api)
            body = complete(api, body, version, drop=True)
            if self.rng.random() < SLIGHTLY_WRONG:
                body = mutated(api, version, body, self.rng)
            step = FuzzStep(api, version, body)
            if api in FORWARDABLE and self.rng.random() < (ALWAYS_FORWARDED if api in TOKENS else FORWARDED):
                step.principal = self.rng.choice(PRINCIPALS)
            for each in topic_requests.with_cleanup(step).cleanup:
                each.version = self.versions[each.api][1]
                each.body = complete(each.api, each.body, each.version, drop=True)
            if not is_known(step, self.draw.model):
                return step

    def _version(self, api: str) -> int:
        low, high = self.versions[api]
        return high if self.rng.random() < 0.6 else self.rng.randint(low, high)
