"""Clients on the wrong listener: Kafka's answer or a closed connection at once, a warning, an entry in the journal."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller
from mockraft.kafka.security import ListenerSecurity
from mockraft.kafka_api.api import Client
from mockraft.kafka_api.journal import Journal, merged
from mockraft.kafka_api.refusals import KEYS_MAX, SILENT_MS, RefusalLog, Repeats
from mockraft.wire.connection import write_request
from mockraft.wire.message import Message
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.fetch_request import FetchRequest
from mockraft.wire.messages.metadata_request import MetadataRequest
from mockraft.wire.messages.sasl_handshake_request import SaslHandshakeRequest

DEADLINE_S = 20


def of_version(request: Message, version: int) -> bytes:
    """Return a request that claims a version which it has not."""
    data = write_request(request, request.max_version, 1, "shop")
    return data[:6] + version.to_bytes(2) + data[8:]


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
RDKAFKA = ApiVersionsRequest(client_software_name="confluent-kafka-python", client_software_version="2.6-rdkafka-2.6")
METADATA = write_request(MetadataRequest(), 12, 1, "shop")

ROWS = {
    "no TLS": ("SSL", METADATA, "a client without TLS on a listener with TLS: the client needs security.protocol=SSL"),
    "TLS": ("PLAINTEXT", HELLO, "TLS on a listener without TLS: the client needs security.protocol=PLAINTEXT"),
    "TLS before login": ("SASL_PLAINTEXT", HELLO, "the client needs security.protocol=SASL_PLAINTEXT"),
    "SASL": (
        "PLAINTEXT",
        write_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "shop"),
        "a SASL login on a listener without SASL: the client needs security.protocol=PLAINTEXT",
    ),
    "no SASL": (
        "SASL_PLAINTEXT",
        METADATA,
        "Metadata before login: the client needs security.protocol=SASL_PLAINTEXT, sasl.mechanism=PLAIN",
    ),
}
"""Security of the listener, what a client sends, and words of the warning."""
AT_CONTROLLERS = {
    "topics": ("PLAINTEXT", METADATA, "this is the controller; clients use {clients} of the brokers"),
    "librdkafka": ("PLAINTEXT", write_request(RDKAFKA, 3, 1, "shop"), "this is the controller; clients use {clients}"),
    "an old version": (
        "PLAINTEXT",
        of_version(BrokerHeartbeatRequest(), 9),
        "BrokerHeartbeat (63) has no version 9 here; it has 0 to 2",
    ),
}
AT_BROKERS = {
    "a controller's API": (
        "PLAINTEXT",
        write_request(BrokerHeartbeatRequest(), 1, 1, "shop"),
        "this is a simulated broker, and its controller is at {controller}",
    ),
    "an old version": ("PLAINTEXT", of_version(FetchRequest(), 1), "Fetch (1) has no version 1 here; it has 4 to 18"),
}


async def end_of(address: str, data: bytes) -> None:
    """Send and wait until the other side has closed, or has answered."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    await reader.read(1)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("at_broker", [False, True], ids=["controller", "broker"])
async def test_a_client_with_wrong_settings_is_told_what_would_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, at_broker: bool
) -> None:
    rows = {**ROWS, **(AT_BROKERS if at_broker else AT_CONTROLLERS)}
    for name, (protocol, data, words) in rows.items():
        options: dict[str, Any] = {}
        if protocol != "PLAINTEXT":
            options = {**ListenerSecurity(tmp_path / protocol, protocol, mechanism="PLAIN").controller_options}  # type: ignore[arg-type]
        async with Controller(brokers=1, **options) as controller, asyncio.timeout(DEADLINE_S):
            caplog.clear()
            mark = controller.mark()
            clients = controller.bootstrap_servers
            for _ in range(2):
                await end_of(clients if at_broker else controller.bootstrap, data)
            wanted = words.format(clients=clients, controller=controller.bootstrap)
            warnings = [each.message for each in caplog.records if each.levelno >= logging.WARNING]
            assert [wanted in each for each in warnings] == [True], (name, warnings)
            reasons = [str(getattr(each, "reason", "")) for each in merged(controller.journals.values(), mark)]
            assert sum(wanted in each for each in reasons) == 2, (name, reasons)


def test_warnings_of_one_kind_and_host_are_a_minute_apart_and_few_are_remembered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = RefusalLog(Journal(0, 0))

    def warnings(kind: str, host: str, now_ms: int) -> int:
        caplog.clear()
        log.warn(kind, Client(1, f"{host}:1", "CONTROLLER"), "no", now_ms)
        return len(caplog.records)

    assert [warnings("tls", "a", 0), warnings("tls", "a", SILENT_MS - 1), warnings("tls", "a", SILENT_MS)] == [1, 0, 1]
    assert [warnings("frame", "a", SILENT_MS), warnings("tls", "b", SILENT_MS)] == [1, 1]
    assert sum(warnings("tls", f"host-{number}", SILENT_MS) for number in range(2 * KEYS_MAX)) == KEYS_MAX - 3
    assert warnings("tls", "host-0", 2 * SILENT_MS) == 1
    once = Repeats(silent_ms=math.inf)
    due = [once.due(number, 0) for number in range(KEYS_MAX + 1)]
    assert (due[-2:], once.due(KEYS_MAX, SILENT_MS), once.due(KEYS_MAX, SILENT_MS)) == ([1, 0], 2, 0), (
        "there was no room"
    )
    for now_ms in (2 * SILENT_MS, 2 * SILENT_MS, 3 * SILENT_MS):
        log.warn("tls", Client(1, "host-0:1", "CONTROLLER"), "no", now_ms)
    assert caplog.messages[-1].endswith(": no (3 times since the last such line)")
