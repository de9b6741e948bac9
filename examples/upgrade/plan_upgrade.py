"""Plan a rolling upgrade with Kafka's Admin client, on the twin of a controller: plan_upgrade.py SOURCE RELEASE PLAN.

Waves.java may as well be given the bootstrap servers of the real cluster.
"""

import sys
from pathlib import Path

from mockraft import Controller
from mockraft.kafka.tools import KafkaTool

BOOTSTRAP_SERVERS = 3


def waves(bootstrap_servers: str, release: str) -> tuple[str, str]:
    """Return the plan that Waves.java makes of what the Admin client says, and its summary."""
    servers = ",".join(bootstrap_servers.split(",")[:BOOTSTRAP_SERVERS])
    with KafkaTool(str(Path(__file__).with_name("Waves.java"))).start(servers, release) as planner:
        plan, summary = planner.communicate()
    if planner.returncode:
        raise RuntimeError(summary)
    return plan, summary


if __name__ == "__main__":
    with Controller.sync(twin_of=sys.argv[1], clock="virtual", twin_brokers="live") as twin:
        plan, summary = waves(twin.bootstrap_servers, sys.argv[2])
    print(summary, end="")
    Path(sys.argv[3]).write_text(plan)
