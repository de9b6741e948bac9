"""Examples for docs/simulated-brokers.md."""

from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.brokers.lifecycle import End


def test_clients_produce_and_consume() -> None:
    with Controller.sync(brokers=3) as controller:
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        admin.create_topics([NewTopic("orders", num_partitions=1, replication_factor=3)])["orders"].result()

        producer = Producer({"bootstrap.servers": controller.bootstrap_servers, "acks": "all"})
        producer.produce("orders", b"two teas")
        assert producer.flush(10) == 0

        settings = {"bootstrap.servers": controller.bootstrap_servers, "group.id": "kitchen"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert message.value() == b"two teas"


async def test_virtual_time_moves_brokers() -> None:
    async with Controller(clock="virtual", brokers=3, session_timeout_ms=9_000) as controller:
        before = {broker_id: broker.heartbeats for broker_id, broker in controller.brokers.items()}
        controller.advance(60_000)
        for broker_id, broker in controller.brokers.items():
            assert broker.heartbeats - before[broker_id] == 30, "one every 2 s"

        controller.brokers[2].freeze()
        controller.advance(9_000 + 9_000 // 8 + 1)
        assert [broker.fenced for broker in controller.state.brokers()] == [False, True, False]

        controller.brokers[2].thaw()
        controller.advance(2_000)
        assert not any(broker.fenced for broker in controller.state.brokers())


async def test_restarted_broker_keeps_its_directories(tmp_path: Path) -> None:
    disks = [tmp_path / "disk-1", tmp_path / "disk-2"]
    async with Controller(session_timeout_ms=1000) as controller:
        broker = await controller.start_broker(1, log_dirs=disks)
        before = broker.life.broker_epoch
        await broker.shut_down()

        again = await controller.start_broker(1, log_dirs=disks)
        assert again.config.previous_broker_epoch == before
        assert [view.directory_id for view in again.log_dirs.values()] == [
            view.directory_id for view in broker.log_dirs.values()
        ]
    assert "cluster.id" in (tmp_path / "disk-1" / "meta.properties").read_text()


def test_leaders_move_from_failed_directory(tmp_path: Path) -> None:
    with Controller.sync(brokers=2) as controller:
        broker = controller.start_broker(3, log_dirs=[tmp_path / "disk-1", tmp_path / "disk-2"])
        admin = AdminClient({"bootstrap.servers": controller.bootstrap_servers})
        admin.create_topics([NewTopic("orders", num_partitions=6, replication_factor=2)])["orders"].result()

        def led_by_broker_3() -> set[str]:
            return {
                f"orders-{each.partition}" for each in controller.state.topic("orders").partitions if each.leader == 3
            }

        before = led_by_broker_3()
        on_disk_2 = set(broker.log_dirs[str(tmp_path / "disk-2")].replicas)

        broker.fail_log_dir(tmp_path / "disk-2")

        controller.wait_until(lambda: not led_by_broker_3() & on_disk_2)
        assert led_by_broker_3() == before - on_disk_2
        assert broker.state is BrokerState.RUNNING


async def test_single_broker_joins_a_controller() -> None:
    async with (
        Controller() as controller,
        SimulatedBroker.joining(
            controller.bootstrap, controller.cluster_id, 1, rack="north", session_timeout_ms=3000
        ) as broker,
    ):
        await broker.wait_until(BrokerState.RUNNING)
        assert broker.heartbeats > 0
        await broker.shut_down()
        assert broker.end is End.GRANTED
