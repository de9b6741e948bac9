import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mockraft
import pytest
from mockraft import Controller
from mockraft.server.clock import VirtualClock
from mockraft.server.config import ControllerConfig
from mockraft.server.controller.log.data_dir import DataDirError


def test_package_import_is_lazy() -> None:
    code = "import sys; before = set(sys.modules); import mockraft; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mockraft" in loaded
    assert {"asyncio", "typer", "mockraft.server", "mockraft.wire"}.isdisjoint(loaded)


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


def test_a_start_that_fails_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with Controller.sync() as first:
        with pytest.raises(OSError, match="in use"), Controller.sync(port=first.port):
            pass
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_refuses_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("not a directory")
    with pytest.raises(DataDirError):
        Controller.sync(data_dir=path)


def test_carries_on_from_its_data_directory(tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path) as controller:
        cluster_id, end = controller.cluster_id, controller.call(lambda: controller.running.controller.log.end_offset)
    with Controller.sync(data_dir=str(tmp_path)) as controller:
        assert controller.cluster_id == cluster_id
        assert controller.call(lambda: controller.running.controller.log.end_offset) > end


def test_a_virtual_hour_at_once_fences_no_broker_and_the_log_outlives_an_earlier_clock(tmp_path: Path) -> None:
    for now_ms in (1_700_000_000_000, 1_700_000_000_000 - 3_600_000):
        options: dict[str, Any] = {"brokers": 1, "data_dir": tmp_path, "metadata_max_idle_interval_ms": 60_000}
        with Controller.sync(clock=VirtualClock(now_ms), **options) as controller:
            controller.advance(3_600_000)
            assert controller.now_ms >= now_ms + 3_600_000
            assert [broker.fenced for broker in controller.state.brokers()] == [False]
            fenced = [record for record in controller.state.metadata_log() if record.type == "FenceBrokerRecord"]
            assert fenced == []


def test_strict_mode_expects_what_a_broker_sends() -> None:
    with Controller.sync(strict=True) as controller:
        controller.start_broker(1)
        controller.assert_all_expected()
