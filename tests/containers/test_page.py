"""Code of docs/how-to/brokers/containers.md."""

from pathlib import Path

import httpx
import pytest
from mockraft.kafka.processes import KafkaBroker
from mockraft.testcontainers import MockraftContainer

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900), pytest.mark.usefixtures("published_image")]


def test_broker_registers_after_two_refusals(tmp_path: Path) -> None:
    with MockraftContainer("mockraft") as mockraft:
        stub = {
            "match": {"api": "BrokerRegistration"},
            "trigger": {"times": 2},
            "actions": [{"injectError": "DUPLICATE_BROKER_REGISTRATION"}],
        }
        httpx.post(f"{mockraft.admin_url}/v1/stubs", headers=mockraft.admin_headers, json=stub).raise_for_status()

        broker = KafkaBroker(1, tmp_path / "broker", mockraft.cluster_id, mockraft.bootstrap)
        broker.format()
        broker.start()
        broker.wait_until_running()
        broker.kill()

        requests = httpx.get(f"{mockraft.admin_url}/v1/requests?api=BrokerRegistration", headers=mockraft.admin_headers)
        errors = [each["error"] for each in requests.json()["requests"]]
        assert errors == ["DUPLICATE_BROKER_REGISTRATION", "DUPLICATE_BROKER_REGISTRATION", None]
