"""Restarts of one controller: the same script on Kafka's and on ours, each a process with its data directory.

Before the restart brokers are in every state, and configs, users, tokens, producer ids and features are not as at the
start; after it come the same requests again, until the sessions of silent brokers are over.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mockraft.conformance.requests import request
from mockraft.kafka.child_process import ChildProcess, wait_until
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest

from ...budgets import soak
from ..parity.conftest import AT_ONCE
from ..running import running
from .script import Script, differences

pytestmark = pytest.mark.real_kafka

SESSION_TIMEOUT_MS = 9_000
SECRET_KEY = "a secret"
SCRAM_SHA_256 = 1
SAFE_DOWNGRADE = 2
HOUR_MS = 3_600_000
LIVING, SILENT = (2, 4), {1, 3}
TOPIC, BROKER = 2, 4


def configs(kind: int, name: str, key: str, value: str) -> dict[str, Any]:
    """Set one config."""
    change = {"name": key, "value": value}
    return {"resources": [{"resourceType": kind, "resourceName": name, "configs": [change]}]}


def described(kind: int, name: str, *keys: str) -> dict[str, Any]:
    """Describe some configs of a resource."""
    return {"resources": [{"resourceType": kind, "resourceName": name, "configurationKeys": list(keys)}]}


ALICE = {"entityType": "user", "entityName": "alice"}
QUOTA = {"entries": [{"entity": [ALICE], "ops": [{"key": "producer_byte_rate", "value": 5.0}]}]}
PASSWORD = {"mechanism": SCRAM_SHA_256, "iterations": 4096, "salt": "c2FsdA==", "saltedPassword": "cGFzc3dvcmQ="}
DELETION = {"deletions": [{"name": "alice", "mechanism": SCRAM_SHA_256}]}
DOWNGRADE = {"feature": "group.version", "maxVersionLevel": 0, "upgradeType": SAFE_DOWNGRADE}

BEFORE: list[tuple[str, str, dict[str, Any]]] = [
    ("config of a topic", "IncrementalAlterConfigs", configs(TOPIC, "t", "retention.ms", "1")),
    ("config of a broker", "IncrementalAlterConfigs", configs(BROKER, "1", "log.cleaner.threads", "2")),
    ("config of all brokers", "IncrementalAlterConfigs", configs(BROKER, "", "message.max.bytes", "9")),
    ("quota", "AlterClientQuotas", QUOTA),
    ("user", "AlterUserScramCredentials", {"upsertions": [{"name": "alice", **PASSWORD}]}),
    ("feature", "UpdateFeatures", {"featureUpdates": [DOWNGRADE]}),
]
AFTER: list[tuple[str, str, dict[str, Any]]] = [
    ("features", "ApiVersions", {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}),
    ("described topic", "DescribeConfigs", described(TOPIC, "t", "max.message.bytes")),
    ("described broker", "DescribeConfigs", described(BROKER, "", "message.max.bytes")),
    *((f"the same {step}", api, fields) for step, api, fields in BEFORE if step != "user"),
    ("delete a user", "AlterUserScramCredentials", DELETION),
    ("delete it again", "AlterUserScramCredentials", DELETION),
    ("a topic of the same name", "CreateTopics", {"topics": [{"name": "t", "numPartitions": 1}], "timeoutMs": 9_000}),
    ("a block for an unknown broker", "AllocateProducerIds", {"brokerId": 5, "brokerEpoch": 5}),
    ("a broker that was unregistered", "UnregisterBroker", {"brokerId": 5}),
]


def begin(script: Script) -> None:
    """Broker 1 is unfenced, 2 fenced, 3 shutting down, 4 unfenced, 5 unregistered."""
    for broker_id in range(1, 6):
        script.register(f"register {broker_id}", broker_id)
    for broker_id in (1, 3, 4):
        script.heartbeat(f"unfence {broker_id}", broker_id)
    script.create_topic("t", 1, 4)
    script.create_topic("u", 3, 4)
    script.heartbeat("shut 3 down", 3, wantShutDown=True)
    script.ask("unregister 5", "UnregisterBroker", {"brokerId": 5})
    for step in BEFORE:
        script.ask(*step)
    for number in range(2):
        script.allocate(f"block {number}", 1)


def create_token(script: Script) -> bytes:
    created = script.side.forward(CreateDelegationTokenRequest(max_lifetime_ms=HOUR_MS), 3, "alice")
    assert created.error_code == 0
    script.records()
    return bytes(created.hmac)


def use_token(script: Script, hmac: bytes) -> None:
    """Renew and expire the token, as its owner and as somebody else."""
    for user in ("bob", "alice"):
        renewal = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=HOUR_MS)
        script.see(f"renewed by {user}", script.side.forward(renewal, 2, user).error_code, script.records())
    for number in range(2):
        end = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1)
        # Kafka's image may still have a token that was just removed, so only the first answer is compared.
        code = script.side.forward(end, 2, "alice").error_code if number == 0 else None
        script.see(f"removed, {number}", code, [] if number else script.records())


def go_on(script: Script, hmac: bytes) -> None:
    """Brokers that were there go on as before, others come again; the silent ones are fenced in the end."""
    script.heartbeat("4 goes on", 4)
    script.heartbeat("4 with another epoch", 4, brokerEpoch=script.epochs[4] + 1)
    script.heartbeat("5 is unknown", 5)
    script.heartbeat("3 shuts down", 3, wantShutDown=True)
    script.register("1 again", 1)
    script.register("1 as another while its session is valid", 1, incarnation=2)
    script.register("2 as another while it is fenced", 2, incarnation=2)
    script.heartbeat("2 is unfenced", 2)
    for broker_id in (1, 4):
        script.allocate(f"next block of {broker_id}", broker_id)
    for step in AFTER:
        script.ask(*step)
    use_token(script, hmac)
    wait_for_fencing(script)
    script.register("1 as another when its session is over", 1, incarnation=3)


def registration(script: Script) -> Any:
    """The first registration of the restarted controller; Kafka's comes some time after its start."""
    first = script.side.registrations[0].incarnation_id

    def again() -> Any:
        script.side.new_records()
        return next((each for each in script.side.registrations if each.incarnation_id != first), None)

    found = wait_until(again, 60, "another incarnation of the controller")
    tree: Any = script.masks.masked(to_json(found, 0))
    return {**tree, "endPoints": len(tree["endPoints"]), "features": sorted(tree["features"], key=repr)}


def wait_for_fencing(script: Script) -> None:
    found: list[Any] = []

    def all_silent_are_fenced() -> bool:
        for broker_id in LIVING:
            script.side.ask(request("BrokerHeartbeat", script.heartbeat_of(broker_id), 1), 1)
        found.extend(script.records())
        return {tree["brokerId"] for _, _, tree in found if tree.get("fenced") == 1} >= SILENT

    wait_until(all_silent_are_fenced, 60, "the silent brokers fenced")
    # Sessions that began at the same moment end in the order of a hash map.
    script.see("the silent brokers are fenced", sorted(found, key=repr))


def life(controller: KafkaController | MockraftController, end: Callable[[ChildProcess], object]) -> dict[str, Any]:
    with running(controller), closing(Script(controller.bootstrap, controller.cluster_id)) as script:
        script.side.skip_start()
        epoch = script.leader_epoch()
        begin(script)
        hmac = create_token(script)
        end(controller)
        controller.start()
        controller.wait_until_running()
        script.follow(controller.bootstrap, epoch)
        script.see("epochs since the first one", script.leader_epoch() - epoch)
        script.see("the controller registers again", registration(script))
        go_on(script, hmac)
        return script.seen


@pytest.mark.parametrize("end", [ChildProcess.kill, pytest.param(ChildProcess.stop, marks=soak)])
def test_a_restarted_controller_goes_on_as_kafkas_does(tmp_path: Path, end: Callable[[ChildProcess], object]) -> None:
    properties = {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS), **AT_ONCE}
    properties["delegation.token.secret.key"] = SECRET_KEY
    kafka = KafkaController(tmp_path / "kafka", random_uuid(), properties=properties)
    options = ["--delegation-token-secret-key", SECRET_KEY, "--session-timeout-ms", str(SESSION_TIMEOUT_MS)]
    mockraft = MockraftController(tmp_path / "mockraft", random_uuid(), options=options)
    with ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(lambda controller: life(controller, end), (kafka, mockraft))
    assert differences(theirs, ours) == ""
