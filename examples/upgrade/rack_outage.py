"""Lose a rack of a controller's twin, and look at it with Kafka's tools: rack_outage.py SOURCE RACK."""

import sys
from collections import Counter

from mockraft import Controller, SyncController
from mockraft.kafka.tools import KafkaTool

CONDITIONS = ("under-replicated", "under-min-isr", "unavailable")
TIMEOUT_S = 300


def described(bootstrap_servers: str) -> dict[str, int]:
    """Return how many partitions kafka-topics finds in need of something."""
    options = ("--bootstrap-server", bootstrap_servers, "--describe")
    tools = {each: KafkaTool("kafka-topics").start(*options, f"--{each}-partitions") for each in CONDITIONS}
    found = {}
    for condition, tool in tools.items():
        printed, errors = tool.communicate(timeout=TIMEOUT_S)
        if tool.returncode:
            raise RuntimeError(errors)
        found[condition] = printed.count("Partition: ")
    return found


def elect_preferred(bootstrap_servers: str) -> None:
    """Let the first replica of every partition lead again."""
    options = ("--bootstrap-server", bootstrap_servers, "--election-type", "preferred", "--all-topic-partitions")
    KafkaTool("kafka-leader-election").run(*options, timeout_s=TIMEOUT_S)


def leaders_by_rack(twin: SyncController) -> dict[str, int]:
    """Return the number of partitions that brokers of each rack lead."""
    racks = {broker.broker_id: broker.rack or "" for broker in twin.state.brokers()}
    led = (racks.get(partition.leader, "none") for topic in twin.state.topics() for partition in topic.partitions)
    return dict(sorted(Counter(led).items()))


if __name__ == "__main__":
    source, rack = sys.argv[1:]
    with Controller.sync(twin_of=source, clock="virtual", twin_brokers="live") as twin:
        lost = [broker.broker_id for broker in twin.state.brokers() if broker.rack == rack]
        left = next(broker for broker_id, broker in twin.brokers.items() if broker_id not in lost).bootstrap_servers
        print("before:      ", described(left), leaders_by_rack(twin))
        print(twin.plan([{"lose_rack": rack}]))
        print("without it:  ", described(left), leaders_by_rack(twin))
        print(twin.plan([{"start": {"brokers": lost, "together": True}}]))
        print("it is back:  ", described(left), leaders_by_rack(twin))
        elect_preferred(left)
        print("and leads:   ", leaders_by_rack(twin))
