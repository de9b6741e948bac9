"""What brokers would have asked and told, in numbers."""

import asyncio

from mockraft import Controller
from mockraft.wire import client
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

_AT_ONCE = 500


async def ask(controller: Controller, count: int = 1, client_id: str = "somebody") -> None:
    """Have ApiVersions asked so many times by one client."""
    host, port = controller.bootstrap.rsplit(":", 1)
    hello = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    connection = await client.connect(host, int(port), client_id=client_id)
    for first in range(0, count, _AT_ONCE):
        again = range(min(_AT_ONCE, count - first))
        await asyncio.gather(*(connection.send(hello, timeout_ms=20_000) for _ in again))
    await connection.close()


def register(controller: Controller, count: int, first: int = 1) -> None:
    """Have the log tell of so many brokers; every tenth is fenced, and the third of their directories is cordoned."""
    records = [
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
    controller.double.state.append(records)


def create_topic(controller: Controller, name: str, isr: list[int], leader: int) -> None:
    """Have the log tell of a topic with one partition on the brokers 1 and 2."""
    topic_id = "AAAAAAAAAAAAAAAAAAAA" + ("Bg" if leader < 0 else "Ag")
    partition = {
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
    controller.double.state.append(
        [
            {"type": "TopicRecord", "record": {"name": name, "topicId": topic_id}},
            {"type": "PartitionRecord", "record": partition},
        ]
    )
