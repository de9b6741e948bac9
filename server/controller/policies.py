"""A test's own word on new topics and changed configs, where Kafka asks create.topic.policy and alter.config.policy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes

T = TypeVar("T")

_log = logging.getLogger("mockraft.controller")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is about to be made (CreateTopicPolicy.RequestMetadata).

    With `replicas_assignments` (broker ids by partition) it is placed by hand, and the two numbers are None.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AlteredConfigs:
    """Configs of one resource that are about to change (AlterConfigPolicy.RequestMetadata); None is a removal.

    Types are Kafka's numbers: 2 topic, 4 broker, 16 client metrics, 32 group.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


CreateTopicPolicy = Callable[[NewTopic], str | None]
AlterConfigPolicy = Callable[[AlteredConfigs], str | None]
"""Say None to let it pass, or why not. A policy that raises is answered UNKNOWN_SERVER_ERROR, as Kafka's."""


def ask(policy: Callable[[T], str | None] | None, about: T) -> None:
    """ApiError POLICY_VIOLATION with what the policy says against it, UNKNOWN_SERVER_ERROR when the policy broke."""
    if policy is None:
        return
    try:
        against = policy(about)
    except Exception as error:
        _log.exception("a policy broke on %r", about)
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR) from error
    if against is not None:
        raise ApiError(error_codes.POLICY_VIOLATION, against)
