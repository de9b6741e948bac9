"""A client asks a broker, which forwards the request: a test sees the client's request, not the Envelope (KIP-590)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mockraft import Controller, VerificationError
from mockraft.spark_replay.report import sections
from mockraft.spark_replay.report.captured import traffic_of_captures
from mockraft.spark_replay.report.sources import Captures
from mockraft.wire.client import connect
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.messages.envelope_request import EnvelopeRequest


async def test_the_forwarded_request_is_a_request_of_its_own(tmp_path: Path) -> None:
    create = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
    create.timeout_ms = 10_000
    async with Controller(brokers=1) as controller:
        host, port = controller.bootstrap_servers.rsplit(":", 1)
        admin = await connect(host, int(port), client_id="admin")
        for _ in range(2):
            await admin.send(create)
        with pytest.raises(VerificationError, match=r"admin, forwarded by broker 1 +CreateTopics .*name=a .*→ ok"):
            controller.verify(0, "CreateTopics")
        first, again = await controller.wait_for(CreateTopicsRequest, 2, topics__name="a")
        assert (first.request.topics[0].name, first.error_code, again.summary()["error"]) == (
            "a",
            0,
            "TOPIC_ALREADY_EXISTS",
        )
        assert (first.forwarded_by, first.principal, first.peer_address) == (1, "User:ANONYMOUS", "127.0.0.1")
        assert controller.verify(2, "CreateTopics", client_id="admin", broker_id=1) == [first, again]
        assert "Envelope" not in {each.api for each in controller.requests()}
        wrapped = controller.verify(2, EnvelopeRequest)
        assert [each.request.request_data for each in wrapped] == [first.request_frame, again.request_frame]

        controller.write_journal(tmp_path / "run.pcapng")
        traffic, _ = traffic_of_captures(Captures([tmp_path / "run.pcapng"]), (), lambda *_: None)
        client = {"clientId": "admin", "host": "127.0.0.1", "principal": "User:ANONYMOUS"}
        assert sections.forwarded(traffic) == [{"api": "CreateTopics", **client, "requests": 2}]
        refused = {"api": "CreateTopics, forwarded", "code": 36, "name": "TOPIC_ALREADY_EXISTS", "answers": 1}
        assert refused in sections.errors(traffic)
