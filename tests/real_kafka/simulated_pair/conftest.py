"""A real broker and a simulated one in one cluster, once on mockraft's controller, once on Kafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mockraft import BrokerState, SimulatedBroker
from mockraft.kafka.cluster import KafkaCluster
from mockraft.kafka.jars import KAFKA_VERSION
from mockraft.wire import json_form
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest

from ...configs import DELETE, SET, change_configs
from ...topics import ask, assigned
from .group_pair import Groups, loaded

REAL, SIMULATED = 1, 2
ITS_OWN = {"node.id", "log.dirs", "metadata.log.dir", "listeners", "advertised.listeners"}
"""Properties in which two brokers must differ."""

NOT_COMPARED = {
    "throttleTimeMs": "quotas of real clients",
    "controllerId": "some broker that is alive, drawn anew for each answer",
    "finalizedFeaturesEpoch": "how far each has read the log, which grows all the time",
}

Change = tuple[int, str, str, str | None]
"""Resource type and name, key and value; without a value it is deleted."""


class Pair:
    """The two brokers, and the ids of the topics that there are."""

    def __init__(self, addresses: dict[int, str], topic_ids: dict[str, bytes]) -> None:
        self.addresses = addresses
        self.topic_ids = topic_ids

    async def ask(self, which: int, request: Any, version: int | None = None) -> Any:
        """The answer of one of them."""
        return await ask(self.addresses[which], request, version)

    async def tree(self, which: int, request: Any, version: int) -> Any:
        """The same as a tree to be compared."""
        return comparable(await self.ask(which, request, version), version)

    async def same(self, request: Any, version: int, but: Callable[[Any], Any] = lambda tree: tree) -> Any:
        """The equal answer of both once they have read equally far; fails with the differences when they stay apart."""
        real = simulated = None
        for _ in range(100):
            real, simulated = [but(await self.tree(which, request, version)) for which in (REAL, SIMULATED)]
            if real == simulated:
                break
            await asyncio.sleep(0.1)
        assert difference(simulated, real) == []
        return real

    @staticmethod
    def difference(ours: Any, theirs: Any) -> list[str]:
        """Paths at which two trees differ."""
        return difference(ours, theirs)


def setting(*resources: Change, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    changes = [(kind, name, (SET if value is not None else DELETE, key, value)) for kind, name, key, value in resources]
    return change_configs(*changes, validate_only=validate_only)


async def fill(addresses: dict[int, str]) -> dict[str, bytes]:
    """Topics, configs, quotas and credentials, all made by way of the simulated broker."""
    topics = [
        assigned("both", [REAL, SIMULATED], [SIMULATED, REAL], retention_ms="1000", min_insync_replicas="2"),
        assigned("single", [SIMULATED]),
        assigned("alone", [REAL]),
    ]
    created = await ask(addresses[SIMULATED], CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    assert {topic.error_code for topic in created.topics} == {0}
    quota = EntryData(
        entity=[EntityData(entity_type="user", entity_name="u")],
        ops=[OpData(key="producer_byte_rate", value=1000.0), OpData(key="request_percentage", value=50.0)],
    )
    everyone = EntryData(
        entity=[EntityData(entity_type="client-id", entity_name=None)],
        ops=[OpData(key="consumer_byte_rate", value=7.0)],
    )
    altered = await ask(addresses[SIMULATED], AlterClientQuotasRequest(entries=[quota, everyone]))
    assert {entry.error_code for entry in altered.entries} == {0}
    credential = ScramCredentialUpsertion(
        name="u", mechanism=1, iterations=4096, salt=b"s" * 8, salted_password=b"p" * 32
    )
    scram = await ask(addresses[SIMULATED], AlterUserScramCredentialsRequest(upsertions=[credential]))
    assert {result.error_code for result in scram.results} == {0}
    configs = setting(
        (4, "", "log.cleaner.backoff.ms", "2"),
        (16, "metrics", "interval.ms", "1000"),
        (32, "group", "consumer.session.timeout.ms", "50000"),
    )
    for each in (configs, setting((4, "", "log.retention.ms", "100000"))):
        answer = await ask(addresses[SIMULATED], each)
        assert {response.error_code for response in answer.responses} == {0}
    return {topic.name: topic.topic_id for topic in created.topics}


@pytest.fixture(scope="module", params=["mockraft", "kafka"])
def pair(request: pytest.FixtureRequest, start_cluster: Callable[..., KafkaCluster]) -> Iterator[Pair]:
    # Partitions of groups and transactional ids for both.
    coordinated = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "3"}
    coordinated["share.coordinator.state.topic.num.partitions"] = "1"
    # Targets are made at once: when others are made depends on the time.
    coordinated |= {f"group.{each}.assignment.interval.ms": "0" for each in ("consumer", "share")}
    cluster = start_cluster(controller=request.param, versions=(KAFKA_VERSION,), broker_properties=coordinated)
    real = cluster.brokers[REAL]
    properties = {key: value for key, value in real.properties.items() if key not in ITS_OWN}
    with SimulatedBroker.sync(
        cluster.controller.bootstrap, cluster.cluster_id, SIMULATED, properties=properties
    ) as simulated:
        simulated.wait_until(BrokerState.RUNNING)
        addresses = {REAL: cluster.bootstrap_servers, SIMULATED: simulated.bootstrap_servers}
        yield Pair(addresses, asyncio.run(fill(addresses)))


@pytest.fixture
async def groups(pair: Pair) -> Groups:
    return await loaded(pair)


def comparable(response: Any, version: int) -> Any:
    """An answer as a tree whose lists are in order and that leaves out what is not compared."""

    def ordered(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: ordered(value) for key, value in tree.items() if key not in NOT_COMPARED}
        if isinstance(tree, list):
            return sorted(map(ordered, tree), key=repr)
        return tree

    return ordered(json_form.to_json(response, version))


def difference(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Differences of two answers, for people."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        return [line for key in ours for line in difference(ours[key], theirs[key], f"{place}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list):
        only_ours = [each for each in ours if each not in theirs]
        only_theirs = [each for each in theirs if each not in ours]
        if 0 < len(only_ours) == len(only_theirs):
            pairs = zip(only_ours, only_theirs, strict=True)
            return [line for one, other in pairs for line in difference(one, other, f"{place}[{one!s:.60}]")]
        if len(ours) == len(theirs) and not only_ours and not only_theirs:
            return [] if ours == theirs else [f"{place}: in the order {ours!s:.2000}, not {theirs!s:.2000}"]
        return [f"{place}: only ours {only_ours!s:.2000}, only theirs {only_theirs!s:.2000}"]
    return [] if ours == theirs else [f"{place}: {ours!r} is not {theirs!r}"]
