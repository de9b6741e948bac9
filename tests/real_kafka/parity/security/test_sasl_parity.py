"""The same log-ins, right and wrong, on a SASL listener of Kafka's controller and of ours: each answer and each end."""

import base64
import dataclasses
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaController, random_uuid, wait_until
from mockraft.kafka_configs.config_keys import BROKER
from mockraft.testing.controller import SyncController
from mockraft.testing.options import ControllerOptions
from mockraft.wire import metadata_log_frame, record_batch, sasl
from mockraft.wire.connection import read_response
from mockraft.wire.json_form import to_json
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_delegation_token_request import CreateDelegationTokenRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.describe_cluster_request import DescribeClusterRequest
from mockraft.wire.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from mockraft.wire.messages.metadata_request import MetadataRequest
from mockraft.wire.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from mockraft.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from mockraft.wire.scram import ScramUser

from tools.blocking_connection import BlockingConnection

from ...running import running

pytestmark = pytest.mark.real_kafka

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
BEARER = "OAUTHBEARER"
LISTENER = "listener.name.controller."
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SESSION_MS = 3_600_000
SESSIONS = "SCRAM-SHA-512"
"""The mechanism whose sessions have an end."""
SESSION_PROPERTIES = {f"{LISTENER}{SESSIONS.lower()}.connections.max.reauth.ms": str(SESSION_MS)}


class Wire(BlockingConnection):
    """One connection: what is sent, what comes back, and whether it ends."""

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, "parity", 20)

    def send(self, data: bytes) -> bytes | None:
        """The next frame, None where the connection ends instead."""
        try:
            self.socket.sendall(data)
            return self.receive_frame()
        except ConnectionError:
            return None

    def bare(self, token: bytes) -> Any:
        return self.send(len(token).to_bytes(4, "big") + token)

    def ask(self, message: Any, version: int) -> Any:
        frame = self.send(self.encode(message, version))
        if frame is None:
            return "closed"
        tree = to_json(read_response(frame, message.api_key, version), version)
        if message.api_key == ApiVersionsRequest.api_key and not tree["errorCode"]:
            return "versions"
        return tree

    def ends(self) -> bool:
        """Return True if nothing more is received. A connection that stays open is sent a request."""
        answer: object = self.ask(DescribeClusterRequest(endpoint_type=2), 1)
        return answer == "closed"

    def shake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        tree = self.ask(SaslAuthenticateRequest(auth_bytes=token), version)
        if not isinstance(tree, dict):
            return tree
        # That of a token with an end depends on when it is sent.
        lifetime_ms = round(tree.get("sessionLifetimeMs", 0), -5)
        return {**tree, "authBytes": _shape(tree["authBytes"]), "sessionLifetimeMs": lifetime_ms}

    def log_in(self, mechanism: str, user: str, password: str) -> list[Any]:
        """Every answer on the way, and whether the connection ended."""
        return [*self.log_in_as(sasl.SaslLogin(mechanism, user, password)), self.ends()]

    def log_in_as(self, login: sasl.SaslLogin) -> list[Any]:
        """Every answer on the way; the server's proof is checked."""
        answers = [self.shake(login.mechanism)]
        tokens = sasl.tokens(login, "nonce")
        token = next(tokens)
        while True:
            request = SaslAuthenticateRequest(auth_bytes=token)
            frame = self.send(self.encode(request, 2))
            if frame is None:
                return [*answers, "closed"]
            response = read_response(frame, request.api_key, 2)
            answers.append({**to_json(response, 2), "authBytes": _shape(response.auth_bytes)})
            if response.error_code:
                return answers
            try:
                token = tokens.send(response.auth_bytes)
            except StopIteration:
                return answers


def _shape(data: Any) -> str:
    """A token without its random parts."""
    raw = base64.b64decode(data) if isinstance(data, str) else data
    return re.sub(r"(?<=nonce)[0-9a-z]+|(?<=s=)[^,]+|(?<=v=).+", "…", raw.decode("latin-1"))


Case = Callable[[Wire], Any]


def logged_in(mechanism: str, user: str, password: str) -> Case:
    return lambda wire: wire.log_in(mechanism, user, password)


def shaken(mechanism: str, *tokens: bytes) -> Case:
    return lambda wire: [wire.shake(mechanism), *map(wire.token, tokens), wire.ends()]


def asked(*steps: tuple[Any, int]) -> Case:
    return lambda wire: [wire.ask(message, version) for message, version in steps]


def bearer(claims: Any, *, algorithm: str = "none", signature: str = "") -> str:
    given = ({"alg": algorithm}, claims)
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in given)
    return ".".join((*parts, signature))


def first(bearer_token: str, *, name: str = "", more: str = "", scheme: str = "Bearer") -> bytes:
    return f"n,{name},\x01auth={scheme} {bearer_token}\x01{more}\x01".encode()


NOW_S = int(time.time())
ENDS = {"exp": NOW_S + 1_000_000}
ALICES = bearer({"sub": "alice", **ENDS})
BEARERS: dict[str, tuple[bytes, ...]] = {
    "alice": (first(ALICES),),
    "alice, of a scheme in small letters": (first(ALICES, scheme="bearer"),),
    "alice, with extensions": (first(ALICES, more="traceid=1\x01"),),
    "alice, as herself": (first(ALICES, name="a=alice"),),
    "alice, as somebody else": (first(ALICES, name="a=root"),),
    "no sub": (first(bearer(ENDS)),),
    "an empty sub": (first(bearer({"sub": "", **ENDS})),),
    "a number as sub": (first(bearer({"sub": 1, **ENDS})),),
    "no exp": (first(bearer({"sub": "alice"})),),
    "a text as exp": (first(bearer({"sub": "alice", "exp": "tomorrow"})),),
    "a fraction as exp": (first(bearer({"sub": "alice", "exp": NOW_S + 1_000_000.5})),),
    "a token that has ended": (first(bearer({"sub": "alice", "exp": NOW_S - 60})),),
    "a token that begins later": (first(bearer({"sub": "alice", "iat": NOW_S + 600, **ENDS})),),
    "another algorithm": (first(bearer({"sub": "alice", **ENDS}, algorithm="HS256")),),
    "a signature": (first(bearer({"sub": "alice", **ENDS}, signature="c2ln")),),
    "claims that are a list": (first(bearer([])),),
    "no JSON": (first("YWJj.YWJj."),),
    "no base64": (first("a.a."),),
    "one part": (first("alice"),),
    "refused, then ended by ^A": (first("alice"), b"\x01"),
    "refused, then alice": (first("alice"), first(ALICES)),
    "no auth": (b"n,,\x01x=y\x01\x01",),
    "^A at once": (b"\x01",),
    "nothing": (b"",),
    "channel binding": (first(ALICES).replace(b"n,", b"y,", 1),),
}

VERSIONS = ApiVersionsRequest(client_software_name="parity", client_software_version="1")
PLAIN = SaslHandshakeRequest(mechanism="PLAIN")
BAD_NAME = ApiVersionsRequest(client_software_name="no name!", client_software_version="1")
ALICE = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
TOPICS = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])

CASES: dict[str, Case] = {
    **{f"bearer of {name}": shaken(BEARER, *tokens) for name, tokens in BEARERS.items()},
    **{
        f"{mechanism} of {user} with {password}": logged_in(mechanism, user, password)
        for mechanism in MECHANISMS[:2]
        for user, password in (("alice", "alice-secret"), ("alice", "wrong"), ("nobody", "alice-secret"))
    },
    "versions, handshake, token": asked((VERSIONS, 4), (PLAIN, 1), (ALICE, 2)),
    "tokens of version 0": asked((PLAIN, 1), (ALICE, 0)),
    "tokens of version 1": asked((PLAIN, 1), (ALICE, 1)),
    "versions twice": asked((VERSIONS, 4), (VERSIONS, 4)),
    "versions of no client, then of one": asked((BAD_NAME, 3), (VERSIONS, 3), (PLAIN, 1)),
    "versions while a token is awaited": asked((PLAIN, 1), (VERSIONS, 3)),
    "handshake while a token is awaited": asked((PLAIN, 1), (PLAIN, 1)),
    "heartbeat while a token is awaited": asked((PLAIN, 1), (BrokerHeartbeatRequest(), 1)),
    "topics while a token is awaited": asked((PLAIN, 1), (TOPICS, 5)),
    "heartbeat first": asked((BrokerHeartbeatRequest(), 1)),
    "metadata first": asked((MetadataRequest(), 9)),
    "token first": asked((ALICE, 2)),
    "unknown mechanism": lambda wire: [wire.shake("GSSAPI"), wire.ends()],
    "unknown mechanism, version 0": lambda wire: [wire.shake("GSSAPI", 0), wire.ends()],
    "handshake when known": lambda wire: [*wire.log_in("PLAIN", "alice", "alice-secret"), wire.shake("PLAIN")],
    "token when known": lambda wire: [*wire.log_in("PLAIN", "alice", "alice-secret"), wire.token(b"")],
    "bare token": lambda wire: [wire.shake("PLAIN", 0), wire.bare(b"\0alice\0alice-secret"), wire.ends()],
    "wrong bare token": lambda wire: [wire.shake("PLAIN", 0), wire.bare(b"\0alice\0no")],
    "garbage": lambda wire: wire.bare(b"\xff" * 20),
    "an http client": lambda wire: wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a token of half a megabyte and more": lambda wire: [
        wire.shake("PLAIN"),
        wire.send((524_289).to_bytes(4, "big") + bytes(9)),
    ],
    "a negative length": lambda wire: wire.send(b"\xff\xff\xff\xff"),
    **{
        f"plain {token!r}": shaken("PLAIN", token)
        for token in (
            b"",
            b"alice\0alice-secret",
            b"\0alice\0alice-secret\0",
            b"\0\0x",
            b"\0alice\0",
            b"root\0alice\0alice-secret",
            b"root\0alice\0wrong",
            b"alice\0alice\0alice-secret",
            b"\0\xff\0\xff",
        )
    },
    **{
        f"scram {token!r}": shaken("SCRAM-SHA-256", token)
        for token in (
            b"",
            b"n,,n=alice",
            b"y,,n=alice,r=nonce",
            b"n,a=alice,n=alice,r=nonce",
            b"n,a=root,n=alice,r=nonce",
            b"n,,m=x,n=alice,r=nonce",
            b"n,,n=alice,r=nonce,x=y",
            b"n,,n=alice,r=nonce,tokenauth=true",
            b"n,,n=alice,r=nonce,tokenauth=false",
            b"n,,n=a=2Dlice,r=nonce",
            b"n,,n=al=3Dice,r=nonce",
        )
    },
    **{
        f"scram, then {token!r}": shaken("SCRAM-SHA-256", b"n,,n=alice,r=nonce", token)
        for token in (b"", b"c=biws,r=nonce,p=AAAA", b"n,,n=alice,r=nonce", b"c=biws,r=other,p=" + b"A" * 88)
    },
}


def added(user: ScramUser) -> str:
    return f"{user.mechanism}=[name={user.name},password={user.password}]"


class Addresses(NamedTuple):
    kafka: tuple[str, int]
    ours: tuple[str, int]
    kafka_log: Path
    controller: SyncController


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """Kafka's listener and ours, with the user alice in every mechanism."""
    kafka = KafkaController(tmp_path_factory.mktemp("kafka"), random_uuid())
    login = 'username="alice" password="alice-secret"'
    kafka.properties |= {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "delegation.token.secret.key": "key",
        f"{LISTENER}sasl.enabled.mechanisms": ",".join((*MECHANISMS, BEARER)),
        f"{LISTENER}oauthbearer.sasl.jaas.config": f'{BEARER_MODULE} required unsecuredLoginStringClaim_sub="broker";',
        f"{LISTENER}plain.sasl.jaas.config": f'{PLAIN_MODULE} required {login} user_alice="alice-secret";',
        **SESSION_PROPERTIES,
        **{f"{LISTENER}{name.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;" for name in MECHANISMS[1:]},
    }
    users = [ScramUser(name, f"{name}-secret", mechanism) for mechanism in MECHANISMS[1:] for name in ("alice", "bob")]
    options: ControllerOptions = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_enabled_mechanisms": (*MECHANISMS, BEARER),
        "plain_users": {"alice": "alice-secret"},
        "delegation_token_secret_key": "key",
        "scram_users": tuple(users),
        "server_properties": SESSION_PROPERTIES,
    }
    with (
        running(kafka, *(text for user in users for text in ("--add-scram", added(user)))),
        Controller.sync(**options) as ours,
    ):
        log = kafka.directory / "log" / "__cluster_metadata-0" / "00000000000000000000.log"
        at_kafka, at_ours = ((each.host, each.port) for each in (kafka, ours))
        yield Addresses(at_kafka, at_ours, log, ours)


@pytest.mark.parametrize("case", CASES)
def test_authentication_equals_kafkas(addresses: Addresses, case: str) -> None:
    assert on(addresses.ours, CASES[case]) == on(addresses.kafka, CASES[case])


def on(address: tuple[str, int], case: Case) -> Any:
    with closing(Wire(address)) as wire:
        return case(wire)


def log_ins(*logins: tuple[str, str, str]) -> Case:
    return lambda wire: [wire.log_in(*login) for login in logins]


AGAIN: dict[str, Case] = {
    "once": log_ins((SESSIONS, "alice", "alice-secret")),
    "twice": log_ins((SESSIONS, "alice", "alice-secret"), (SESSIONS, "alice", "alice-secret")),
    "twice, then with a wrong password": log_ins((SESSIONS, "alice", "alice-secret"), (SESSIONS, "alice", "wrong")),
    "as somebody else": log_ins((SESSIONS, "alice", "alice-secret"), (SESSIONS, "bob", "bob-secret")),
    "with another mechanism": lambda wire: [
        wire.log_in(SESSIONS, "alice", "alice-secret"),
        wire.shake("PLAIN"),
        wire.token(b"\0alice\0alice-secret"),
    ],
    "with a mechanism that is not there": lambda wire: [
        wire.log_in(SESSIONS, "alice", "alice-secret"),
        wire.shake("GSSAPI"),
        wire.ends(),
    ],
    "three times at once": lambda wire: [
        wire.log_in(SESSIONS, "alice", "alice-secret"),
        wire.log_in(SESSIONS, "alice", "alice-secret"),
        wire.shake(SESSIONS),
        wire.ends(),
    ],
    "with something in between": lambda wire: [
        wire.log_in(SESSIONS, "alice", "alice-secret"),
        wire.shake(SESSIONS),
        wire.ends(),
    ],
}


@pytest.mark.parametrize("case", AGAIN)
def test_reauthentication_equals_kafkas(addresses: Addresses, case: str) -> None:
    assert on(addresses.ours, AGAIN[case]) == on(addresses.kafka, AGAIN[case])


def test_the_configs_of_a_mechanism_are_described_as_kafkas(addresses: Addresses) -> None:
    keys = [*SESSION_PROPERTIES]
    node = DescribeConfigsResource(resource_type=BROKER, resource_name="3000", configuration_keys=keys)

    def described(wire: Wire) -> Any:
        wire.log_in("PLAIN", "alice", "alice-secret")
        return wire.ask(DescribeConfigsRequest(resources=[node], include_synonyms=True), 4)

    assert on(addresses.ours, described) == on(addresses.kafka, described)


def with_token(wire: Wire, address: tuple[str, int], mechanism: str) -> list[Any]:
    """Alice makes a token over her own connection, and somebody logs in with it on another."""
    wire.log_in("PLAIN", "alice", "alice-secret")
    token = wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
    password = token["hmac"]
    login = sasl.SaslLogin(mechanism, token["tokenId"], password, is_token=True)

    def log_in() -> list[Any]:
        with closing(Wire(address)) as other:
            answers = other.log_in_as(login)
            lifetime_ms = answers[-1]["sessionLifetimeMs"] if isinstance(answers[-1], dict) else 0
            if lifetime_ms:
                # A day, less what went by since the token was made.
                answers[-1]["sessionLifetimeMs"] = round(lifetime_ms / 3_600_000)
                answers.append(other.ask(CreateDelegationTokenRequest(), 3)["errorCode"])
            return answers

    # Kafka's listener knows a token a moment after its controller does.
    wait_until(lambda: log_in()[-1] != "closed" and log_in()[1]["errorCode"] == 0, 60, "a token that is known")
    wrong = dataclasses.replace(login, password="wrong")
    with closing(Wire(address)) as other:
        return [log_in(), other.log_in_as(wrong), wire.ask(RenewDelegationTokenRequest(hmac=b"?"), 2)["errorCode"]]


@pytest.mark.parametrize("mechanism", MECHANISMS[1:])
def test_a_delegation_token_logs_in_as_on_kafkas_controller(addresses: Addresses, mechanism: str) -> None:
    ours, kafka = (
        on(address, partial(with_token, address=address, mechanism=mechanism))
        for address in (addresses.ours, addresses.kafka)
    )
    assert ours == kafka


def test_users_of_a_new_log_are_written_as_kafka_storage_has_them_written(addresses: Addresses) -> None:
    batches = record_batch.read_batches(addresses.kafka_log.read_bytes())
    theirs = [
        metadata_log_frame.decode(value or b"")
        for batch in batches
        if not batch.is_control
        for _, value in batch.records
    ]
    log = addresses.controller.running.controller.log
    ours = addresses.controller.call(lambda: [record_at for _, record_at in log.records()])
    assert first_records(ours) == first_records(theirs)


def first_records(records: Iterable[Any]) -> list[Any]:
    """Up to the end of the first transaction; of a credential what does not follow from its salt."""
    found = []
    for record, version in records:
        name = type(record).__name__
        tree = to_json(record, version)
        if "storedKey" in tree:
            tree = {key: tree[key] for key in ("name", "mechanism", "iterations")}
        found.append((name.removesuffix("Decoded"), version, tree))
        if "EndTransaction" in name:
            break
    return found
