"""Run the controller in a container from a test."""

from pathlib import Path

import httpx
import pytest
from mockraft.kafka.processes import KafkaBroker
from mockraft.testcontainers import MockraftContainer

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]


def test_a_broker_whose_registration_is_refused_twice(image: str, tmp_path: Path) -> None:
    def start_a_broker(cluster_id: str, controller: str) -> KafkaBroker:
        broker = KafkaBroker(1, tmp_path / "broker", cluster_id, controller)
        broker.format()
        broker.start()
        return broker

    with MockraftContainer(image) as mockraft:
        stub = {
            "match": {"api": "BrokerRegistration"},
            "trigger": {"times": 2},
            "actions": [{"injectError": "DUPLICATE_BROKER_REGISTRATION"}],
        }
        httpx.post(f"{mockraft.admin_url}/v1/stubs", headers=mockraft.admin_headers, json=stub).raise_for_status()

        broker = start_a_broker(mockraft.cluster_id, mockraft.bootstrap)
        broker.wait_until_running()

        asked = httpx.get(
            f"{mockraft.admin_url}/v1/requests?api=BrokerRegistration", headers=mockraft.admin_headers
        ).json()["requests"]
        assert [each["error"] for each in asked] == [
            "DUPLICATE_BROKER_REGISTRATION",
            "DUPLICATE_BROKER_REGISTRATION",
            None,
        ]
        broker.kill()
