"""Policies of a test for new topics and changed configs, as create.topic.policy and alter.config.policy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mockraft.kafka_api.api import call_of_test, failure_text
from mockraft.kafka_api.refusals import SHOWN_MAX
from mockraft.server.controller.result import ApiError
from mockraft.wire import error_codes
from mockraft.wire.printable import printable_line

T = TypeVar("T")

_log = logging.getLogger("mockraft.controller")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create (CreateTopicPolicy.RequestMetadata).

    With `replicas_assignments` (broker ids by partition) it is placed manually, and the two numbers are None.
    """

    topic: str
    num_partitions: int | None
    replication_factor: int | None
    replicas_assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AlteredConfigs:
    """Configs of one resource to change (AlterConfigPolicy.RequestMetadata); None is a removal.

    Types are Kafka's numbers: 2 topic, 4 broker, 16 client metrics, 32 group.
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


CreateTopicPolicy = Callable[[NewTopic], str | None]
AlterConfigPolicy = Callable[[AlteredConfigs], str | None]
"""Return None to accept, or the reason to refuse. A policy that raises gives UNKNOWN_SERVER_ERROR, as in Kafka."""


class Asking(Protocol):
    """The controller that asks; `policy_failure` is the traceback of a policy that raised, empty for none."""

    policy_failure: str


def ask(controller: Asking, policy: Callable[[T], str | None] | None, about: T) -> None:
    """Raise ApiError POLICY_VIOLATION with the policy's reason, UNKNOWN_SERVER_ERROR if the policy raised.

    What it raised is the failure of the request in the journal.
    """
    if policy is None:
        return
    try:
        against = call_of_test(policy, about)
    except Exception as error:
        _log.exception("a policy raised on %s", printable_line(repr(about), SHOWN_MAX))
        controller.policy_failure = failure_text()
        raise ApiError(error_codes.UNKNOWN_SERVER_ERROR) from error
    if against is not None:
        raise ApiError(error_codes.POLICY_VIOLATION, against)
