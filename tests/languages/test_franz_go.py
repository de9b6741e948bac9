"""A program with franz-go commits, aborts and moves records in transactions on simulated brokers."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import Controller

from .tools import run

pytestmark = [pytest.mark.languages, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).with_name("franz_go")


@pytest.mark.parametrize(("brokers", "protocol"), [(1, "classic"), (3, "classic"), (3, "consumer")])
def test_franz_go_works_with_transactions(brokers: int, protocol: str) -> None:
    assert run(PROGRAM, "gofmt", "-l", ".", package="golang-go") == ""
    with Controller.sync(brokers=brokers) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        for created in admin.create_topics([NewTopic(name, 1, brokers) for name in ("orders", "bills")]).values():
            created.result(10)
        seeds = controller.bootstrap_servers.split(",")
        bills = run(PROGRAM, "go", "run", ".", protocol, *seeds, package="golang-go")
        assert bool(controller.requests("ConsumerGroupHeartbeat")) == (protocol == "consumer")
    assert bills.splitlines() == ["bill for order 0", "bill for order 2"]
