"""A service that makes its topic when it starts, with a bug that shows only if an answer is lost."""

import asyncio
import os

from mockraft.wire.client import connect
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

NONE, NOT_CONTROLLER = 0, 41


async def make_topic(bootstrap: str, name: str) -> None:
    """Create the topic; try again if the controller is away."""
    host, _, port = bootstrap.rpartition(":")
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    for _ in range(5):
        try:
            connection = await connect(host, int(port), client_id="provisioner")
            try:
                answer = await connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
            finally:
                await connection.close()
        except OSError:
            continue
        if answer.topics[0].error_code == NONE:
            return
        if answer.topics[0].error_code != NOT_CONTROLLER:
            raise RuntimeError(f"cannot create {name}: error {answer.topics[0].error_code}")
    raise RuntimeError("the controller is away")


if __name__ == "__main__":
    asyncio.run(make_topic(os.environ["MOCKRAFT_BOOTSTRAP"], "orders"))
