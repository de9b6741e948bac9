"""Requests and answers that brokers would have exchanged, as counts."""

import asyncio
import struct
from collections.abc import Mapping

from mockraft import Controller
from mockraft.wire.json_form import Json
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

_API_VERSIONS, _VERSION = 18, 4


async def ask(controller: Controller, count: int = 1, client_id: str = "somebody") -> None:
    """Have ApiVersions asked so many times by one client, all at once."""
    name = client_id.encode()
    body = ApiVersionsRequest(client_software_name="tests", client_software_version="1").write(_VERSION)
    request = struct.pack(">hhih", _API_VERSIONS, _VERSION, 1, len(name)) + name + b"\0" + body
    host, port = controller.bootstrap.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write((struct.pack(">i", len(request)) + request) * count)
    for _ in range(count):
        await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
    writer.close()
    await writer.wait_closed()


def register(controller: Controller, count: int, first: int = 1) -> None:
    """Have the log tell of so many brokers; every tenth is fenced, and the third of their directories is cordoned."""
    records: list[Mapping[str, Json]] = [
        {
            "type": "RegisterBrokerRecord",
            "record": {
                "brokerId": broker_id,
                "isMigratingZkBroker": False,
                "incarnationId": "AAAAAAAAAAAAAAAAAAAAAQ",
                "brokerEpoch": broker_id,
                "endPoints": [
                    {"name": "PLAINTEXT", "host": f"broker-{broker_id}.example", "port": 9092, "securityProtocol": 0}
                ],
                "features": [],
                "rack": f"rack-{broker_id % 3}",
                "fenced": broker_id % 10 == 0,
                "inControlledShutdown": False,
                "logDirs": [f"AAAAAAAAAAAAAAAA{number:04}AA" for number in range(7)][1:4],
                "cordonedLogDirs": ["AAAAAAAAAAAAAAAA0003AA"],
            },
        }
        for broker_id in range(first, first + count)
    ]
    controller.state.append(records)


def create_topic(controller: Controller, name: str, isr: list[int], leader: int) -> None:
    """Have the log tell of a topic with one partition on the brokers 1 and 2."""
    topic_id = "AAAAAAAAAAAAAAAAAAAA" + ("Bg" if leader < 0 else "Ag")
    partition: Json = {
        "partitionId": 0,
        "topicId": topic_id,
        "replicas": [1, 2],
        "isr": isr,
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": leader,
        "leaderEpoch": 1,
        "partitionEpoch": 1,
        "directories": ["AAAAAAAAAAAAAAAA0001AA", "AAAAAAAAAAAAAAAA0001AA"],
    }
    controller.state.append(
        [
            {"type": "TopicRecord", "record": {"name": name, "topicId": topic_id}},
            {"type": "PartitionRecord", "record": partition},
        ]
    )
