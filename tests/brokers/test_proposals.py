"""A simulated broker of a proposal on a controller that serves it."""

from typing import Any

import pytest
from mockraft import BrokerState, Controller, SimulatedBroker
from mockraft.wire import api_keys

from ..topics import create_topics, topic
from ..waiting import until

DEADLINE_S = 60.0


def partitions_of(image: Any, name: str) -> list[Any]:
    return list(image.topics.by_name[name].partitions.values())


@pytest.mark.parametrize("profile", [["kip-858"], ["kip-1066"], ["kip-858", "kip-1066"]], ids=" and ".join)
async def test_runs_on_a_controller_of_the_same_proposal(profile: list[str]) -> None:
    async with Controller(profile=profile) as controller:
        joining: dict[str, Any] = {
            "messages": controller.messages,
            "log_dir_paths": ("/a", "/b"),
            "heartbeat_interval_ms": 50,
        }
        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, **joining) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            await create_topics(controller.bootstrap, topic("t", 3, 1))

            directories = {log_dir.directory_id for log_dir in broker.config.log_dirs}
            image = controller.running.controller.image
            await until(lambda: {each.directories[0] for each in partitions_of(image, "t")} <= directories)
            failed, kept = broker.config.log_dirs
            broker.fail_log_dir(failed.directory_id)
            await until(lambda: image.cluster.brokers[1].log_dirs == (kept.directory_id,))
            await until(lambda: (own := broker.view.registration) and own.log_dirs == (kept.directory_id,))
            heartbeat = controller.journal.exchanges(api_keys.BROKER_HEARTBEAT)[-1]
            assert heartbeat.api_version == controller.messages.request(63).max_version
        assert broker.fault is None
    assert broker.refusals == {}


async def test_kip_1066_registration_contains_the_cordoned_directories_of_the_file() -> None:
    async with Controller(profile="kip-1066") as controller:
        joining: dict[str, Any] = {
            "messages": controller.messages,
            "log_dir_paths": ("/a", "/b"),
            "cordoned_log_dirs": "/b",
        }
        async with SimulatedBroker.joining(controller.bootstrap, controller.cluster_id, 1, **joining) as broker:
            await broker.wait_until(BrokerState.RUNNING)
            cordoned = broker.directories.find("/b").directory_id
            (registration,) = controller.journal.exchanges(api_keys.BROKER_REGISTRATION)
            assert registration.request.cordoned_log_dirs == [cordoned]
