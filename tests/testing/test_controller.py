import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mockraft
import pytest
from mockraft import Controller
from mockraft.kafka_api.clock import VirtualClock
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import DataDirError
from mockraft.wire.connection import write_request
from mockraft.wire.messages.api_versions_request import ApiVersionsRequest

from ..rows import each_row


def test_package_import_is_lazy() -> None:
    code = "import sys; before = set(sys.modules); import mockraft; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mockraft" in loaded
    assert {"asyncio", "mockraft.server", "mockraft.wire"}.isdisjoint(loaded)


def test_package_lists_its_names() -> None:
    assert "Controller" in dir(mockraft)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = mockraft.Nothing


async def test_each_controller_has_its_own_port_and_cluster() -> None:
    async with Controller() as first, Controller() as second:
        assert first.port != second.port
        assert first.cluster_id != second.cluster_id
        assert first.bootstrap == f"127.0.0.1:{first.port}"
        assert first.node_id == 3000


@pytest.mark.parametrize(("metadata_version", "level"), [("4.1", 27), ("3.9-IV0", 21), (17, 17)])
async def test_takes_a_metadata_version_as_people_write_it(metadata_version: str | int, level: int) -> None:
    async with Controller(metadata_version=metadata_version) as controller:
        assert controller.running.controller.image.metadata_version == level


@pytest.mark.parametrize("metadata_version", ["5.0", 6, 34])
async def test_refuses_a_metadata_version_that_is_not_there(metadata_version: str | int) -> None:
    with pytest.raises(ValueError, match=r"metadata.version|MetadataVersion"):
        async with Controller(metadata_version=metadata_version):
            pass


async def test_the_same_seed_gives_the_same_cluster_id() -> None:
    async with Controller(seed=3) as first, Controller(seed=3) as second:
        assert first.cluster_id == second.cluster_id


async def test_takes_a_whole_config() -> None:
    config = ControllerConfig(port=0, node_id=5, cluster_id="p66Y0sRpQNGVKjK4oTgauw")
    async with Controller(config, session_timeout_ms=77) as controller:
        assert (controller.node_id, controller.cluster_id) == (5, "p66Y0sRpQNGVKjK4oTgauw")
        assert controller.running.config.session_timeout_ms == 77


def test_use_outside_its_block_is_refused() -> None:
    with pytest.raises(RuntimeError, match="inside its `with` block"):
        _ = Controller().bootstrap


def test_use_after_its_block_is_refused() -> None:
    with Controller.sync() as controller:
        pass
    for use in (lambda: controller.start_broker(1), lambda: controller.stub("Fetch").inject_error("NOT_CONTROLLER")):
        with pytest.raises(RuntimeError, match="the controller does not run: use it inside its `with` block"):
            use()


async def test_an_asynchronous_controller_is_refused_without_its_block_or_after_it() -> None:
    with pytest.raises(TypeError, match=r"use `with Controller\.sync"):
        Controller().__enter__()
    async with Controller() as controller:
        pass
    for use in (lambda: controller.stub("Fetch"), lambda: controller.faults.fence(1)):
        with pytest.raises(RuntimeError, match="the controller does not run"):
            use()


Use = Callable[[Any], object]
REFUSED: list[tuple[Use, str]] = [
    (lambda c: c.brokers[7], "no broker 7: there are [1]"),
    (lambda c: c.start_broker(3000), "broker_id=3000: that is the id of a controller"),
    (lambda c: c.start_broker(5, properties={"num.partitons": "3"}), "num.partitons; did you mean num.partitions?"),
    (lambda c: c.wait_for("Fetch", timeout_s=-1), "timeout_s=-1: it must be at least 0"),
    (lambda c: Controller.sync(port=c.port).__enter__(), "in use: '127.0.0.1:"),
    (lambda c: c.stub("CreateTopics", topics__name__contain="x"), "no fields of its own; did you mean contains?"),
    (lambda c: c.stub("CreateTopics", broker_ids=1), "; did you mean broker_id or "),
    (lambda c: c.stub("Fetch", topic="t").inject_error("NONE"), "0 is no error"),
    (lambda c: c.stub("Fetch", topic="t").inject_error(9999), "9999 is no error of Kafka's"),
]


@each_row(("use", "about"), REFUSED)
def test_a_wrong_value_is_refused_with_what_there_is(use: Use, about: str) -> None:
    with (
        Controller.sync(brokers=1, assert_all_used=False) as controller,
        pytest.raises((ValueError, LookupError, OSError), match=re.escape(about)),
    ):
        use(controller)


@each_row(
    ("wrong", "about"),
    [
        ({"brokers": -1}, "brokers=-1: it must be at least 0"),
        ({"release": 3.9}, 'release=3.9: it must be a text, as in "3.9"'),
        ({"as_version": 3.9}, 'release=3.9: it must be a text, as in "3.9"'),
        ({"host": None}, "host=None: it must be a text"),
        ({"cluster_id": 5}, "cluster_id=5: it must be a text"),
        ({"advertised_host": b"a"}, "advertised_host=b'a': it must be a text or None"),
    ],
)
def test_an_option_of_a_wrong_type_is_named(wrong: dict[str, Any], about: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(about)}$"):
        Controller.sync(**wrong)


def test_a_host_that_no_log_can_contain_is_not_blamed_on_a_data_directory() -> None:
    with (
        pytest.raises(DataDirError, match=r"^the log in memory cannot be used: "),
        Controller.sync(advertised_host="\ud800"),
    ):
        pass


def test_a_start_that_fails_leaves_no_thread_behind() -> None:
    before = {*threading.enumerate()}  # not their number: a thread of an earlier test may end meanwhile
    with Controller.sync() as first:
        with pytest.raises(OSError, match="in use"), Controller.sync(port=first.port):
            pass
        assert len({*threading.enumerate()} - before) == 1
    assert {*threading.enumerate()} <= before


def test_carries_on_from_its_data_directory(tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path) as controller:
        cluster_id, end = controller.cluster_id, controller.call(lambda: controller.running.controller.log.end_offset)
    with Controller.sync(data_dir=str(tmp_path)) as controller:
        assert controller.cluster_id == cluster_id
        assert controller.call(lambda: controller.running.controller.log.end_offset) > end


def test_ten_virtual_minutes_at_once_fence_no_broker_and_the_log_outlives_an_earlier_clock(tmp_path: Path) -> None:
    for now_ms in (1_700_000_000_000, 1_700_000_000_000 - 3_600_000):
        options: dict[str, Any] = {"brokers": 1, "data_dir": tmp_path, "metadata_max_idle_interval_ms": 60_000}
        with Controller.sync(clock=VirtualClock(now_ms), **options) as controller:
            controller.advance(600_000)
            assert controller.now_ms >= now_ms + 600_000
            assert [broker.fenced for broker in controller.state.brokers()] == [False]
            fenced = [record for record in controller.state.metadata_log() if record.type == "FenceBrokerRecord"]
            assert fenced == []


def test_strict_mode_expects_what_a_broker_sends() -> None:
    with Controller.sync(strict=True) as controller:
        controller.start_broker(1)
        controller.assert_all_expected()


def test_an_interruption_that_nobody_waited_for_is_raised_once_all_is_closed(tmp_path: Path) -> None:
    asked = threading.Event()

    def interrupt(_: object) -> None:
        asked.set()
        raise KeyboardInterrupt

    def test() -> None:
        with (
            Controller.sync(data_dir=tmp_path) as controller,
            socket.create_connection((controller.host, controller.port)) as client,
        ):
            controller.stub("ApiVersions").once().answers(interrupt)
            client.sendall(write_request(ApiVersionsRequest(), 0, 1, None))
            assert asked.wait(20)

    with pytest.raises(RuntimeError, match=r"^KeyboardInterrupt\(\) was raised"):
        test()
    with Controller.sync(data_dir=tmp_path) as controller:
        assert controller.node_id == 3000, "the data directory was locked"
