"""`mockraft health`: its line and exit code, before and after login, and on a TLS listener."""

from pathlib import Path
from typing import Any

from mockraft import Controller
from mockraft.kafka.security import ListenerSecurity
from mockraft.kafka_api.journal import ClosedConnection

from ..cli.cli import invoke
from ..rows import each_row

SASL: dict[str, Any] = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": ("PLAIN",),
    "plain_users": {"a": "b"},
}


@each_row(
    ("options", "reason"),
    {
        "a login": (SASL, "; its leader is not visible before login"),
        "an ACL": ({"super_users": "User:admin"}, "; its leader is not visible: CLUSTER_AUTHORIZATION_FAILED"),
        "an old level": ({"metadata_version": 7}, ": leader 3000 in epoch 1"),
    },
)
def test_an_answer_is_enough_where_the_leader_is_hidden(options: dict[str, Any], reason: str) -> None:
    with Controller.sync(**options) as controller:
        done = invoke("health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        assert (done.exit_code, done.stdout) == (0, f"{controller.bootstrap} answers{reason}\n")


def test_health_command_logs_in_and_is_no_refused_connection_without(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"

    def client_properties(password: str) -> Path:
        file = tmp_path / "client.properties"
        jaas = f'{module} required username="a" password="{password}";'
        file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
        return file

    with Controller.sync(**SASL) as controller:
        health = ("health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        done = invoke(*health, "--command-config", client_properties("b"))
        assert (done.exit_code, done.stdout) == (0, f"{controller.bootstrap} answers: leader 3000 in epoch 1\n")
        assert "not visible before login" in invoke(*health).stdout
        closed = [entry for entry in controller.running.node.journal.entries if isinstance(entry, ClosedConnection)]
        assert [(entry.refused, entry.reason) for entry in closed if "health check" in entry.reason] == [
            (False, "a health check: DescribeQuorum before login")
        ]
        done = invoke(*health, "--command-config", client_properties("wrong"))
        assert (done.exit_code, "does not answer: authentication failed" in done.stdout) == (1, True)


def test_health_command_asks_for_the_options_of_a_tls_listener(tmp_path: Path) -> None:
    security = ListenerSecurity(tmp_path, "SSL")
    with Controller.sync(**security.controller_options) as controller:
        health = ("health", "--bootstrap", controller.bootstrap, "--timeout-ms", 30_000)
        done = invoke(*health)
        assert done.exit_code == 1
        assert done.stdout.endswith("; does it listen with TLS? Then give --command-config\n")
        done = invoke(*health, "--command-config", security.client_properties())
        assert (done.exit_code, done.stdout) == (0, f"{controller.bootstrap} answers: leader 3000 in epoch 1\n")
