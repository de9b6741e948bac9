"""Options of `mockraft serve` and `mockraft broker` for authentication and authorization."""

import asyncio
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.cli.serve.options import OPTIONS, SECRETS, defaults
from mockraft.cli.serve.security import plain_users, scram_users, secrets_of
from mockraft.kafka.certificates import CertificateAuthority
from mockraft.kafka.child_process import ChildProcess
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.security import ListenerSecurity
from mockraft.server.config import ControllerConfig
from mockraft.wire import api_keys, client
from mockraft.wire.client_security import ClientSecurity
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.scram import ScramUser

from ..rows import each_row
from .cli import DEADLINE_S, invoke, one_line, started

pytestmark = pytest.mark.programs

CLUSTER_ID = "p66Y0sRpQNGVKjK4oTgauw"


def refused(*options: str) -> str:
    """Messages of `mockraft serve` when it does not start."""
    result = invoke("serve", "--port", "0", *options)
    assert result.exit_code == 2, result.output
    return one_line(result.output)


def test_users_come_from_files(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# who\nalice=secret=with=equals\n\nbob= blank \n")
    assert plain_users(path) == {"alice": "secret=with=equals", "bob": " blank "}
    path.write_text('SCRAM-SHA-256=[name=alice,password=s]\nSCRAM-SHA-512=[name="b",iterations=8192,password="t"]\n')
    assert scram_users(path) == (ScramUser("alice", "s"), ScramUser("b", "t", "SCRAM-SHA-512", 8192))
    assert (plain_users(None), scram_users(None)) == ({}, ())


@each_row("line", ["alice", "=secret", "alice="])
def test_a_line_without_a_user_is_reported_without_its_text(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users"
    path.write_text(f"bob=b\n{line}\n")
    said = refused("--plain-users-file", str(path))
    assert f"{path}, line 2: it must be name=password" in said
    assert "secret" not in said


@each_row(
    "line", ["alice=s", "SCRAM-SHA-256=[name=a]", "SCRAM-SHA-256=[password=p]", "SCRAM-SHA-256=[name=a,password=p,x=y]"]
)
def test_credential_refused_by_kafka_storage_is_reported(tmp_path: Path, line: str) -> None:
    path = tmp_path / "users"
    path.write_text(line)
    assert f"{path}, line 1: it must be SCRAM-SHA-256=[name=…,password=…]" in refused("--scram-users-file", str(path))


def test_a_secret_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("s3cret\n")
    options = {**defaults(), "delegation_token_secret_key_file": path}
    assert secrets_of(options) == {"delegation_token_secret_key": "s3cret"}
    assert secrets_of(defaults()) == {}
    flag = ("--delegation-token-secret-key-file", str(path))
    assert "--delegation-token-secret-key is given, too" in refused(*flag, "--delegation-token-secret-key", "other")
    path.write_text("s3cret\nsecond")
    said = refused(*flag)
    assert f"{path}: it must have one line, the value of --delegation-token-secret-key" in said
    assert "s3cret" not in said
    assert "No such file" in refused("--delegation-token-secret-key-file", str(tmp_path / "nothing"))


def test_every_secret_option_may_be_in_a_file_and_is_in_no_text() -> None:
    names = ["delegation_token_secret_key", "ssl_key_password", "ssl_truststore_password"]
    assert [(row.name, row.in_a_file.name in OPTIONS, row.in_a_file.variables) for row in SECRETS] == [
        (name, True, (f"MOCKRAFT_{name.upper()}_FILE",)) for name in names
    ]
    user = ScramUser("alice", "s3cret")
    sasl = SaslLogin("PLAIN", "alice", "s3cret")
    login = ClientSecurity("SASL_PLAINTEXT", login=sasl, key_password="s3cret", truststore_password="s3cret")
    config = ControllerConfig(
        security_protocol="SASL_PLAINTEXT",
        sasl_enabled_mechanisms=("PLAIN",),
        delegation_token_secret_key="s3cret",
        ssl_key_password="s3cret",
        ssl_truststore_password="s3cret",
        plain_users={"alice": "s3cret"},
        scram_users=(user,),
        client_security=login,
    )
    assert "s3cret" not in repr(config)
    secret = [each.name for each in fields(ControllerConfig) if "secret" in each.name or "password" in each.name]
    assert secret == [*names, "show_secrets"]


@each_row(
    ("options", "reason"),
    [
        (
            ("--security-protocol", "TLS"),
            "--security-protocol: 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (("--security-protocol", "SSL"), "needs --ssl-certificate-file"),
        (("--security-protocol", "SASL_PLAINTEXT"), "needs --sasl-enabled-mechanisms: PLAIN, SCRAM-SHA-256"),
        (
            ("--sasl-enabled-mechanisms", "PLAIN,GSSAPI"),
            "--sasl-enabled-mechanisms: 'GSSAPI' is none of PLAIN, SCRAM-SHA-256,",
        ),
        (("--ssl-client-auth", "maybe"), "--ssl-client-auth: 'maybe' is none of none, requested, required"),
        (("--ssl-principal-mapping-rules", "RULE:x"), "is neither DEFAULT nor RULE:"),
        (("--plain-users-file", "/nowhere"), "/nowhere: No such file or directory"),
        (("--client-config-file", "/nowhere"), "/nowhere: No such file or directory"),
        (
            ("--security-protocol", "SASL_PLAINTEXT", "--sasl-enabled-mechanisms", "PLAIN", "--brokers", "1"),
            "the simulated brokers must log in: give users",
        ),
    ],
)
def test_contradicting_options_are_refused(options: tuple[str, ...], reason: str) -> None:
    assert reason in refused(*options)


def test_users_are_refused_where_nobody_has_to_log_in(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("alice=s3cret\n")
    said = refused("--plain-users-file", str(path))
    assert "--plain-users-file: --security-protocol PLAINTEXT asks for no password; SASL_PLAINTEXT and" in said
    assert "s3cret" not in said


def test_plain_without_users_is_a_warning() -> None:
    sasl = ("--security-protocol", "SASL_PLAINTEXT", "--sasl-enabled-mechanisms", "PLAIN")
    with started("serve", "--port", "0", *sasl, ready=r"mockraft ready .*\n") as (process, _):
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    (warning,) = [line for line in errors.splitlines() if "WARNING" in line]
    assert warning.endswith("PLAIN is enabled without users, so that nobody can log in with it: add --plain-users-file")


def test_bad_pem_files_and_encrypted_keys_are_refused(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    files = ("--security-protocol", "SSL", "--ssl-certificate-file", str(authority.certificate), "--ssl-key-file")
    (tmp_path / "no.pem").write_text("no PEM")
    assert "are no certificate with its key in PEM" in refused(*files, str(tmp_path / "no.pem"))
    assert "No such file or directory; certificates" in refused(*files, str(tmp_path / "nothing.pem"))
    other = authority.issue("/CN=other")
    assert "are no certificate with its key in PEM" in refused(*files, str(other.key))
    encrypted = tmp_path / "encrypted.key"
    encrypt = ["openssl", "pkey", "-in", str(other.key), "-aes256", "-passout", "pass:x", "-out", str(encrypted)]
    subprocess.run(encrypt, check=True)
    assert f"{encrypted} is encrypted, and no password of the key is given" in refused(*files, str(encrypted))
    password = tmp_path / "password"
    password.write_text("y")
    assert "is it another password?" in refused(*files, str(encrypted), "--ssl-key-password-file", str(password))
    (tmp_path / "java.jks").write_bytes(b"\xfe\xed\xfe\xed")
    assert "convert it: keytool -importkeystore" in refused(*files, str(tmp_path / "java.jks"))


async def test_a_process_serves_and_its_own_brokers_log_in(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SASL_SSL", mechanism="SCRAM-SHA-256")
    own = ("--brokers", "1", "--client-config-file", str(security.client_properties()))
    controller = MockraftController(tmp_path, CLUSTER_ID, keep_data=False, options=[*security.serve_options, *own])
    controller.start()
    try:
        controller.wait_until_running()
        controller.wait_for_log("broker 1: fenced to unfenced")
        connection = await client.connect(controller.host, controller.port, security=security.client)
        await connection.close()
    finally:
        controller.stop()
    assert security.password not in controller.log


async def test_a_broker_of_a_process_of_its_own_logs_in_with_kafkas_client_properties(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path / "security", "SASL_SSL", mechanism="PLAIN")
    broker = ChildProcess("broker", tmp_path / "broker.log")
    async with Controller(**security.controller_options) as controller:
        config = ("--command-config", str(security.client_properties()))
        command = (sys.executable, "-m", "mockraft", "broker", "--id", "4", "--bootstrap-controller")
        broker.launch([*command, controller.bootstrap, *config])
        try:
            await asyncio.to_thread(broker.wait_for_log, "RECOVERY -> RUNNING")
        finally:
            broker.kill()
        (registered,) = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
        assert registered.principal == "User:broker"


def test_unsupported_client_properties_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nssl.truststore.type=BCFKS\nssl.truststore.location=/trust\n")
    said = refused("--client-config-file", str(path))
    assert f"{path}: ssl.truststore.type is BCFKS: mockraft reads PEM and PKCS12" in said
