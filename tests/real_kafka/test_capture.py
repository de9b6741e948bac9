"""A real broker and a real controller with `mockraft capture` between them; captures replayed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from mockraft import Controller
from mockraft.kafka.child_process import ChildProcess, free_port
from mockraft.kafka.mockraft_process import MockraftController
from mockraft.kafka.processes import KafkaBroker, KafkaController, random_uuid
from mockraft.server.stubs.stub import stub
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.captured import Captured
from mockraft.spark_replay.regression.replay import ExchangeResult, replay
from mockraft.spark_replay.regression.summary import report
from mockraft.wire import api_keys, error_codes
from mockraft.wire.connection import parse_request

from ..budgets import soak
from ..clients import create_topic
from .running import running

pytestmark = pytest.mark.real_kafka


class TwoLives:
    """The file, the controller's address, and the ports at the other end of the broker's connections by life."""

    def __init__(self, path: Path, controller: Endpoint, proxy: Endpoint) -> None:
        self.path = path
        self.controller = controller
        self.proxy = proxy
        self.ports_seen: list[set[int]] = []
        self.exchanges: list[Captured] = []


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> TwoLives:
    """A broker starts, gets a topic, restarts and gets another one."""
    folder = tmp_path_factory.mktemp("captured")
    cluster_id = random_uuid()
    controller = KafkaController(folder / "controller", cluster_id)
    proxy_port = free_port()
    found = TwoLives(
        folder / "run.pcapng", Endpoint(controller.host, controller.port), Endpoint("127.0.0.1", proxy_port)
    )
    proxy = ChildProcess("mockraft capture", folder / "capture.log")
    options = ["--listen", str(found.proxy), "--upstream", controller.bootstrap, "--out", str(found.path)]
    broker = KafkaBroker(1, folder / "broker", cluster_id, str(found.proxy))
    broker.format()
    with running(controller), ExitStack() as undo:
        undo.callback(proxy.kill)
        proxy.launch([sys.executable, "-m", "mockraft", "capture", *options])
        proxy.wait_for_log("mockraft capture ready")
        for topic in ("before", "after"):
            with running(broker, formatted=True):
                create_topic(broker.bootstrap, topic)
                found.ports_seen.append(remote_ports(broker))
                broker.stop()
        proxy.stop()
        assert proxy.exit_code == 0, proxy.log
    found.exchanges = read_exchanges(found.path)
    return found


def remote_ports(broker: KafkaBroker) -> set[int]:
    return {each.raddr.port for each in psutil.Process(broker.pid).net_connections("tcp") if each.raddr}


def test_all_connections_go_through_the_proxy_also_after_a_restart(captured: TwoLives) -> None:
    for ports in captured.ports_seen:
        assert captured.proxy.port in ports
        assert captured.controller.port not in ports


def test_file_contains_both_broker_sessions(captured: TwoLives) -> None:
    counts = Counter(api_keys.name(each.api_key) for each in captured.exchanges)
    assert counts["BrokerRegistration"] >= 2  # once more while its old session lasts
    assert counts["Envelope"] >= 2
    assert counts["Fetch"] > 2
    unanswered = {api_keys.name(each.api_key) for each in captured.exchanges if each.response is None}
    assert unanswered.isdisjoint({"BrokerRegistration", "Envelope"})


def first_life(captured: TwoLives) -> list[Captured]:
    """Until the broker registers again: that waits nine seconds for the old session, which full speed does not."""
    sent_ns = sorted(
        each.request_ts_ns
        for each in captured.exchanges
        if each.request and each.api_key == api_keys.BROKER_REGISTRATION
    )
    return [each for each in captured.exchanges if each.request and each.request_ts_ns < sent_ns[1]]


async def test_mockraft_responses_equal_the_real_controllers(captured: TwoLives) -> None:
    exchanges = first_life(captured)
    async with Controller() as controller:
        found = report(await replay(exchanges, controller.host, controller.port))
    assert found.findings == []
    assert {each.api for each in found.apis} >= {
        "ApiVersions",
        "BrokerRegistration",
        "BrokerHeartbeat",
        "Fetch",
        "Envelope",
    }


async def test_a_controller_that_lies_once_is_found_out(captured: TwoLives) -> None:
    async with Controller() as controller:
        lie = stub("BrokerRegistration").once().change(response={"errorCode": 35})
        controller.running.node.script.stubs.add(lie)
        found = report(await replay(first_life(captured), controller.host, controller.port))
    assert ("BrokerRegistration", "errorCode", 0, 35) in [each[:4] for each in found.findings]


def test_file_contains_the_controllers_advertised_address(captured: TwoLives) -> None:
    fetches = [each for each in captured.exchanges if each.api_key == api_keys.FETCH and each.response]
    said = b"".join(each.response for each in fetches if each.response)
    assert captured.controller.port.to_bytes(2) in said
    assert {Endpoint(each.server, each.server_port) for each in fetches} == {captured.controller}
    client_ids = {parse_request(each.request).client_id for each in captured.exchanges if each.request}
    assert {"raft-client-1", "1"} <= client_ids


ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "evidence" / "replayed-capture.md").read_text()
CAPTURES = ROOT / "tests" / "captures"
BY_ELECTION = "Fetch:responses[].partitions[].errorCode"
BY_EXCHANGE = re.compile(r"^\| (\d+) \| (\w+) \| `([^`]+)` \| (\S+) \| (\S+) \|", re.MULTILINE)
BY_ANSWER = re.compile(r"^\| ([\w, ]+) \| (\d+) \| (closed|as captured|otherwise|[A-Z_, ]+) \|", re.MULTILINE)

AnyController = KafkaController | MockraftController


@pytest.fixture(params=[pytest.param("kafka", marks=soak), "mockraft"])
def controller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyController]:
    made: AnyController
    if request.param == "mockraft":
        made = MockraftController(tmp_path, random_uuid(), release="4.3")
    else:
        made = KafkaController(tmp_path, random_uuid(), version="4.3.1")
    with running(made):
        yield made


async def test_a_real_controllers_capture_has_the_listed_elections_and_no_difference_on_any_controller(
    controller: AnyController,
) -> None:
    listed = BY_EXCHANGE.findall(DOCUMENT)
    assert listed
    exchanges = read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093})
    replayed = await replay(exchanges, controller.host, controller.port)
    assert len(replayed.outcomes) == 858
    found = []
    for outcome in replayed.outcomes:
        assert (outcome.failure, [*outcome.differences]) == (None, [])
        for each in (each for each in outcome.excused if each.rule == BY_ELECTION):
            live = "offset" if each.path.endswith("highWatermark") else str(each.live)
            path = re.sub(r"\[[^]]*\]", "[]", each.path)
            found.append((str(outcome.captured.number), outcome.api, path, str(each.captured), live))
    assert sorted(found) == sorted(listed)


async def test_recorded_broker_requests_are_answered_as_listed_by_any_controller(controller: AnyController) -> None:
    exchanges = read_exchanges(CAPTURES / "brokers-4.3.1.pcap", {19192, 19292})
    replayed = await replay(exchanges, controller.host, controller.port)
    found = Counter((outcome.api, answered(outcome)) for outcome in replayed.outcomes)
    listed: set[tuple[str, str]] = set()
    for apis, count, how in BY_ANSWER.findall(DOCUMENT):
        rows = {(api, how) for api in apis.split(", ")}
        assert sum(found[row] for row in rows) == int(count), (apis, how)
        listed |= rows
    assert listed == set(found)


def answered(outcome: ExchangeResult) -> str:
    """In one word: closed, as captured, the error codes that the captured answer had not, or otherwise."""
    if outcome.failure is not None:
        return "closed"
    codes = {
        error_codes.name(each.live)
        for each in outcome.differences
        if each.path.endswith("errorCode") and isinstance(each.live, int)
    }
    return ", ".join(sorted(codes)) or ("otherwise" if outcome.differences else "as captured")
