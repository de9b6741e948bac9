"""Clients over their controller mutation quota: refused or throttled by both controllers alike.

Rates are so low that no bucket fills up meanwhile; times to wait are compared in tens of seconds.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from mockraft.kafka.processes import wait_until
from mockraft.wire.messages.alter_client_quotas_request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from mockraft.wire.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from mockraft.wire.messages.create_topics_request import CreateTopicsRequest
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest

from ...topics import topic

pytestmark = pytest.mark.real_kafka

RATE = 0.01
"""One partition costs 100 seconds, of which a full bucket has 11."""
PROBE_RATE = 0.0001
_probes = (f"probe-{number}" for number in itertools.count())


def limit(side: Any, *limits: tuple[str | None, str | None, float | None], absent: str = "-") -> None:
    """Set quotas of (user, client id, rate); `absent` is no such part, None its default, no rate removes it."""
    entries, probe = [], next(_probes)
    for user, client_id, rate in (*limits, (probe, absent, PROBE_RATE)):
        parts = [(kind, name) for kind, name in (("user", user), ("client-id", client_id)) if name != absent]
        entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        op = OpData(key="controller_mutation_rate", value=rate or 0.0, remove=rate is None)
        entries.append(EntryData(entity=entity, ops=[op]))
    answer = side.ask(AlterClientQuotasRequest(entries=entries), 1)
    assert [each.error_code for each in answer.entries] == [0] * len(entries)
    # Kafka's controller applies quotas some time after they are committed. The probe is new; no other rate is so low.
    wait_until(lambda: create(side, probe, 7, 1, is_trial=True)[1] > 500, 60, "the quotas known")


def create(side: Any, user: str, version: int, *counts: int, is_trial: bool = False, **how: Any) -> Any:
    """Make topics with so many partitions; gives their codes and the time to wait."""
    topics = [topic(f"{user}-{version}-{number}-{count}", count, 1) for number, count in enumerate(counts)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=9000, validate_only=is_trial)
    answer = side.forward(request, version, user, **how)
    by_name = {each.name: each for each in answer.topics}
    return _outcome([by_name[each.name] for each in topics], answer)


def add(side: Any, user: str, version: int, *names: str, count: int = 3) -> Any:
    topics = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names]
    answer = side.forward(CreatePartitionsRequest(topics=topics, timeout_ms=9000), version, user)
    return _outcome(sorted(answer.results, key=lambda each: names.index(each.name)), answer)


def delete(side: Any, user: str, version: int, name: str) -> Any:
    answer = side.forward(DeleteTopicsRequest(topic_names=[name], timeout_ms=9000), version, user)
    return _outcome(answer.responses, answer)


def _outcome(results: list[Any], answer: Any) -> Any:
    codes = [each.error_code for each in results]
    messages = {getattr(each, "error_message", None) for each in results}
    return codes, answer.throttle_time_ms // 10_000, sorted(map(str, messages))


def requests(side: Any) -> list[Any]:
    """Answers of each API and version at the quota's limit."""
    side.add_broker(1)
    result = [create(side, "free", 7, 5, 1)]
    users = ["strict", "older", "mixed", "trial", "grow", "grow-old", "gone", "gone-old"]
    limit(side, *((user, "-", RATE) for user in users))
    result += [create(side, "strict", 7, 1), create(side, "strict", 7, 1), create(side, "strict", 6, 2, 3)]
    result += [create(side, "older", 5, 1), create(side, "older", 5, 2, 3), create(side, "older", 7, 1)]
    result += [create(side, "mixed", 7, 2, 1, 3), create(side, "mixed", 2, 1), create(side, "mixed", 7, 0, 1)]
    result += [create(side, "trial", 7, 2, is_trial=True), create(side, "trial", 7, 2, is_trial=True)]
    result.append(create(side, "boss", 7, 1, 1, 1, 1))
    first, second, third, fourth = (f"boss-7-{number}-1" for number in range(4))
    result += [add(side, "grow", 3, first, second), add(side, "grow", 3, second), add(side, "grow", 2, second)]
    result += [
        add(side, "grow-old", 1, third),
        add(side, "grow-old", 1, third),
        add(side, "grow-old", 3, third, count=5),
    ]
    result += [delete(side, "gone", 6 - 1, first), delete(side, "gone", 5, second), delete(side, "gone", 4, second)]
    result += [delete(side, "gone-old", 1, third), delete(side, "gone-old", 5, fourth), delete(side, "free", 5, fourth)]
    limit(side, ("gone", "-", None), ("strict", "-", 1000.0), ("older", "-", 2 * RATE))
    result += [create(side, user, 7, 1) for user in ("gone", "gone", "strict", "older")]
    return result


def test_requests_over_the_quota_are_refused_or_throttled(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(requests)
    assert theirs == ours


def entities(side: Any) -> list[Any]:
    """The quota that applies among several, identified by the throttle time, and clients that share a bucket."""
    side.add_broker(1)
    result = []

    def over(user: str, client_id: str, **how: Any) -> None:
        for _ in range(2):
            answer = create(side, user, 7, 1, is_trial=True, client_id=client_id, **how)
        result.append((user, client_id, answer))

    limit(side, (absent := "-", "c1", 0.02), ("-", None, 0.03))
    for client_id in ("c1", "c2", ""):
        over("alone", client_id)
        over("another", client_id)
    limit(side, ("u1", absent, 0.005), ("u2", "c3", 0.004), ("u2", None, 0.003), ("u2", absent, 0.006))
    for user in ("u1", "u2", "u3"):
        for client_id in ("c1", "c3", "c4", ""):
            over(user, client_id)
    over("u1", "c9", principal_type="Group")
    over("u8", "", principal_type="Group")
    limit(side, (None, "c5", 0.002), (None, None, 0.0015), (None, absent, 0.001))
    for user in ("u1", "u2", "u4", "u5"):
        for client_id in ("c1", "c5", "c6", ""):
            over(user, client_id)
    return result


def test_the_strongest_quota_counts(on_both: Callable[..., tuple[Any, Any]]) -> None:
    theirs, ours = on_both(entities)
    assert theirs == ours
