"""A controller that has met every kind of secret shows none of them, in any output; with --show-secrets it does."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.server.controller.log.snapshot import SnapshotId
from mockraft.wire import client, messages
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.connection import read_response, write_request
from mockraft.wire.messages import alter_user_scram_credentials_request as scram
from mockraft.wire.messages import create_topics_request as create
from mockraft.wire.messages import incremental_alter_configs_request as alter
from mockraft.wire.messages.default_principal_data import DefaultPrincipalData
from mockraft.wire.sasl import SaslLogin

from tests.cli.cli import completed
from tests.fetches import fetch_request, snapshot_request

from ..budgets import soak

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"

# Never kept, so not even --show-secrets shows them.
PLAIN_PASSWORD, SCRAM_PASSWORD = "marked-plain-password", "marked-scram-password"
WRONG_PASSWORD, TOKEN_KEY, ADMIN_TOKEN = "marked-wrong-password", "marked-token-key", "marked-admin-token"
KEPT_NOWHERE = (PLAIN_PASSWORD, SCRAM_PASSWORD, WRONG_PASSWORD, TOKEN_KEY, ADMIN_TOKEN)

SALT, SALTED = b"marked-salt-of-alice", b"marked-salted-password-of-alice!"
KEY_PASSWORD, UNKNOWN_CONFIG, BROKEN = "marked-key-password", "marked-unknown-config", "marked-broken-frame"
SHOWN = (SALT, SALTED, KEY_PASSWORD.encode(), UNKNOWN_CONFIG.encode(), BROKEN.encode())


def forms(secret: bytes) -> list[bytes]:
    """A secret as it may appear: raw, as base64 at each of three offsets, as hex, as in a repr."""
    found = [secret, secret.hex().encode(), repr(secret)[2:-1].encode()]
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + secret)
        found.append(encoded[4 if offset else 0 : len(encoded) - 4])
    return found


def leaks(output: bytes, secrets: tuple[bytes, ...]) -> set[bytes]:
    """The secrets in an output."""
    return {secret for secret in secrets if any(form in output for form in forms(secret))}


class Api:
    """The admin API of a controller, and everything that it sent."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.outputs: dict[str, bytes] = {}

    def __call__(self, path: str, body: object = None, method: str | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found: bytes = answer.read()
        except urllib.error.HTTPError as error:
            found = error.read()
        self.outputs[f"{method or ''} {path}"] = found
        return found


@contextmanager
def secured(folder: Path, *options: str) -> Iterator[tuple[MockraftController, Api]]:
    """A process with secrets of every kind in its options, and its admin API."""
    files = {
        "plain-users-file": f"admin={PLAIN_PASSWORD}\n",
        "scram-users-file": f"SCRAM-SHA-256=[name=broker,password={SCRAM_PASSWORD}]\n",
        "delegation-token-secret-key-file": f"{TOKEN_KEY}\n",
        "admin-token-file": ADMIN_TOKEN,
    }
    arguments = ["--security-protocol", "SASL_PLAINTEXT", "--sasl-enabled-mechanisms", "PLAIN,SCRAM-SHA-256"]
    for name, text in files.items():
        (folder / name).write_text(text)
        arguments += [f"--{name}", str(folder / name)]
    arguments += ["--admin-port", "0", "--log-level", "debug", *options]
    controller = MockraftController(folder, CLUSTER_ID, options=arguments)
    controller.start()
    try:
        controller.wait_until_running(60)
        yield controller, Api(controller.wait_for_log(r"admin=(http\S+)", 10, "its admin API")[1])
    finally:
        controller.stop()


async def connected(controller: MockraftController, password: str = PLAIN_PASSWORD) -> client.KafkaConnection:
    """A connection that has logged in with PLAIN."""
    security = ClientSecurity("SASL_PLAINTEXT", login=SaslLogin("PLAIN", "admin", password))
    return await client.connect(controller.host, controller.port, security=security)


async def forwarded(connection: client.KafkaConnection, request: Any) -> Any:
    """The response to a request in an Envelope."""
    principal = DefaultPrincipalData(type="User", name="alice")
    version = request.max_version
    envelope = messages.EnvelopeRequest(
        request_data=write_request(request, version, 1, "tool")[4:],
        request_principal=b"\0\0" + principal.write(0),
        client_host_address=b"\x7f\0\0\1",
    )
    answered = await connection.send(envelope)
    assert answered.error_code == 0
    return read_response(answered.response_data or b"", request.api_key, version)


def config(name: str, value: str) -> Any:
    """A request that sets a config of all brokers."""
    changed = [alter.AlterableConfig(name=name, value=value)]
    resource = alter.AlterConfigsResource(resource_type=4, resource_name="", configs=changed)
    return alter.IncrementalAlterConfigsRequest(resources=[resource])


async def use_everything(controller: MockraftController, api: Api) -> bytes:
    """Send every kind of secret; return the HMAC of the delegation token."""
    with pytest.raises(client.AuthenticationFailedError):
        await connected(controller, WRONG_PASSWORD)
    by_scram = ClientSecurity("SASL_PLAINTEXT", login=SaslLogin("SCRAM-SHA-256", "broker", SCRAM_PASSWORD))
    await (await client.connect(controller.host, controller.port, security=by_scram)).close()
    connection = await connected(controller)
    upsertion = scram.ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=SALT, salted_password=SALTED
    )
    assert (await connection.send(scram.AlterUserScramCredentialsRequest(upsertions=[upsertion]))).results[0].user
    for name, value in (("ssl.key.password", KEY_PASSWORD), ("a.config.of.nobody", UNKNOWN_CONFIG)):
        changed = await connection.send(config(name, value))
        assert changed.responses[0].error_code == 0
        await forwarded(connection, config(name, value))
    topic = create.CreatableTopic(
        name="orders",
        num_partitions=1,
        replication_factor=1,
        configs=[create.CreatableTopicConfig(name="a.config.of.nobody", value=UNKNOWN_CONFIG)],
    )
    assert (await connection.send(create.CreateTopicsRequest(topics=[topic]))).topics[0].error_code
    token = await forwarded(connection, messages.CreateDelegationTokenRequest())
    assert token.error_code == 0
    for request in (
        messages.RenewDelegationTokenRequest(hmac=token.hmac),
        messages.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
    ):
        assert (await forwarded(connection, request)).error_code == 0
    await read_the_log(connection, api)
    await break_off(controller)
    await connection.close()
    assert isinstance(token.hmac, bytes)
    return token.hmac


async def read_the_log(connection: client.KafkaConnection, api: Api) -> None:
    """Fetch the metadata log and a snapshot of it, as brokers do."""
    found = await connection.send(fetch_request(max_wait_ms=0))
    assert b"alice" in (found.responses[0].partitions[0].records or b"")
    snapshot_end = json.loads(api("/v1/snapshots", {}))["endOffset"]
    for position in (0, 200):
        request = snapshot_request(SnapshotId(snapshot_end, 1), position=position)
        read = await connection.send(request)
        assert read.topics[0].partitions[0].unaligned_records


async def break_off(controller: MockraftController) -> None:
    """Send a frame that breaks behind a secret, on a connection that has logged in."""
    connection = await connected(controller)
    frame = write_request(config("ssl.key.password", BROKEN), 1, 9, "tool")
    broken = (len(frame) - 5).to_bytes(4) + frame[4:-1]
    assert connection._transport is not None
    connection._transport.write(broken)
    while connection.is_open:
        await asyncio.sleep(0)


def read_everything(controller: MockraftController, api: Api, folder: Path) -> dict[str, bytes]:
    """Read every output of a controller."""
    for path in (
        "/",
        "/metrics",
        "/v1/health",
        "/v1/requests?summary=false&limit=1000",
        "/v1/requests?limit=1000",
        "/v1/requests.jsonl",
        "/v1/requests.pcapng",
        "/v1/requests/unmatched",
        "/v1/state",
        "/v1/state/file",
        "/v1/records?limit=1000",
        "/v1/settings",
        f"/v1/requests?q={KEY_PASSWORD}",
    ):
        api(path)
    api("/v1/recordings/journal", {})
    where = {"upsertions[].saltedPassword": base64.b64encode(SALTED).decode()}
    for match in ({"where": where}, {"where": {"resources[].configs[].value": KEY_PASSWORD}}):
        api(f"/v1/requests/verify#{len(api.outputs)}", {"match": match, "count": 99})
    api("/v1/records", {"records": [{"type": "ConfigRecord", "record": record_of("", KEY_PASSWORD)}]})
    api("/v1/records#", {"records": [{"type": "ConfigRecord", "record": record_of(None, KEY_PASSWORD)}]})
    outputs = {**api.outputs, "log": controller.log.encode()}
    capture = folder / "saved.pcapng"
    environment = {**os.environ, "MOCKRAFT_ADMIN": api.url, "MOCKRAFT_ADMIN_TOKEN": ADMIN_TOKEN}
    for file in (capture, folder / "saved.jsonl"):
        save = [sys.executable, "-m", "mockraft", "requests", "save", str(file)]
        subprocess.run(save, env=environment, check=True, capture_output=True, timeout=120)
        outputs[file.name] = file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    stubs = completed("record", "--capture", capture, "--out", "-", "--port", controller.port)
    outputs["record"] = stubs.stdout.encode() + stubs.stderr.encode()
    return outputs


def record_of(resource: str | None, value: str) -> Mapping[str, object]:
    """A ConfigRecord as JSON."""
    return {"resourceType": 4, "resourceName": resource, "name": "ssl.key.password", "value": value}


def private_modes(folder: Path) -> set[tuple[str, str]]:
    """Kinds and modes of the files beneath a folder."""
    found = [*folder.rglob("*"), folder]
    return {("d" if path.is_dir() else "f", oct(stat.S_IMODE(path.stat().st_mode))) for path in found}


def test_no_output_has_a_secret(tmp_path: Path) -> None:
    with secured(tmp_path) as (controller, api):
        hmac = asyncio.run(use_everything(controller, api))
        outputs = read_everything(controller, api, tmp_path)
        found = outputs[" /v1/requests?summary=false&limit=1000"]
        assert b'"saltedPassword":"[hidden]"' in found
        assert b'"value":"[hidden]"' in found
        assert b'"ssl.key.password":"[hidden]"' in outputs[" /v1/state"]
        assert b'"requests":[]' in outputs[f" /v1/requests?q={KEY_PASSWORD}"]
        assert private_modes(tmp_path / "data" / "__cluster_metadata-0") == {("d", "0o700"), ("f", "0o600")}
        command_line = Path(f"/proc/{controller.pid}/cmdline")
        outputs["ps"] = command_line.read_bytes() if command_line.exists() else b""
    secrets = (*SHOWN, *(each.encode() for each in KEPT_NOWHERE), hmac)
    assert {name: leaks(output, secrets) for name, output in outputs.items() if leaks(output, secrets)} == {}


@soak
def test_every_kind_of_secret_is_shown_on_request(tmp_path: Path) -> None:
    with secured(tmp_path, "--show-secrets") as (controller, api):
        hmac = asyncio.run(use_everything(controller, api))
        outputs = read_everything(controller, api, tmp_path)
    never = tuple(each.encode() for each in KEPT_NOWHERE)
    assert {name: leaks(output, never) for name, output in outputs.items() if leaks(output, never)} == {}
    everything = {*SHOWN, hmac}
    assert leaks(outputs[" /v1/requests.pcapng"], tuple(everything)) == everything
    assert leaks(outputs[" /v1/requests.jsonl"], tuple(everything)) == everything
    in_the_state = {KEY_PASSWORD.encode(), UNKNOWN_CONFIG.encode()}
    assert leaks(outputs[" /v1/state"], tuple(everything)) == in_the_state
    assert leaks(outputs[" /v1/records?limit=1000"], tuple(everything)) == {*in_the_state, SALT}
    assert leaks(outputs[" /v1/state/file"], tuple(everything)) == {*in_the_state, SALT}
