"""`MockraftContainer`: brokers on the host and in other containers reach the controller at its advertised address."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from mockraft.kafka.processes import KafkaBroker, wait_until
from mockraft.testcontainers import MockraftContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from .conftest import run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]


def brokers_of(mockraft: MockraftContainer) -> dict[int, bool]:
    """The fenced state of each registered broker, by id."""
    answer = httpx.get(f"{mockraft.admin_url}/v1/brokers", headers=mockraft.admin_headers)
    return {broker["brokerId"]: broker["fenced"] for broker in answer.raise_for_status().json()["brokers"]}


def test_a_real_broker_on_the_host_runs_on_it(image: str, tmp_path: Path) -> None:
    with MockraftContainer(image) as mockraft:
        broker = KafkaBroker(1, tmp_path / "broker", mockraft.cluster_id, mockraft.bootstrap)
        broker.format()
        broker.start()
        try:
            broker.wait_until_running()
            assert wait_until(lambda: brokers_of(mockraft) == {1: False}, 60, "it to be unfenced")
        finally:
            broker.kill()


def test_stubs_are_added_over_http_with_the_containers_token(image: str) -> None:
    stub = {"match": {"api": "BrokerRegistration"}, "actions": [{"injectError": "INVALID_REGISTRATION"}]}
    with MockraftContainer(image) as mockraft:
        assert httpx.post(f"{mockraft.admin_url}/v1/stubs", json=stub).status_code == 401
        added = httpx.post(f"{mockraft.admin_url}/v1/stubs", json=stub, headers=mockraft.admin_headers)
        assert added.status_code == 201, added.text


def test_two_of_them_share_no_port_and_no_cluster(image: str) -> None:
    with MockraftContainer(image) as one, MockraftContainer(image) as other:
        assert one.bootstrap != other.bootstrap
        assert one.cluster_id != other.cluster_id


def test_a_broker_in_another_container_finds_it_by_its_alias(image: str) -> None:
    with Network() as network, MockraftContainer(image, network=network, alias="controller") as mockraft:
        assert mockraft.bootstrap == "controller:9093"
        broker = DockerContainer(image).with_network(network)
        broker.with_command(["broker", "--id", "7", "--bootstrap-controller", mockraft.bootstrap])
        broker.waiting_for(LogMessageWaitStrategy(re.compile("RUNNING|running")).with_startup_timeout(60))
        with broker:
            wait_until(lambda: brokers_of(mockraft) == {7: False}, 60, "it to be unfenced")


def test_failed_start_reports_the_cause_and_removes_the_container(image: str) -> None:
    before = run("docker", "ps", "--all", "--quiet")
    with pytest.raises(RuntimeError, match="--no-such-option"):
        MockraftContainer(image, arguments=("--no-such-option",), startup_timeout_s=20).start()
    assert run("docker", "ps", "--all", "--quiet") == before
