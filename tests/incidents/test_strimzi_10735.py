"""strimzi#10735: a controller of an older release does not start on the metadata of a newer one."""

from pathlib import Path

from mockraft import Controller
from mockraft.kafka.processes import KafkaController


def test_controller_of_3_9_exits_over_a_level_of_4_0(tmp_path: Path) -> None:
    with Controller.sync(data_dir=tmp_path / "log", release="4.0") as controller:
        cluster_id, level = controller.cluster_id, controller.state.features()["metadata.version"]

    older = KafkaController(tmp_path, cluster_id, version="3.9.2")
    older.start()
    by_loader, by_controller = "but this controller only supports", "No MetadataVersion with feature level"
    older.wait_for_log(rf"featureLevel={level}\), {by_loader}|{by_controller} {level}")  # whichever comes first
    assert older.wait() == 1

    same = KafkaController(tmp_path, cluster_id, version="4.0.2")
    try:
        same.start()
        same.wait_until_running()
        assert "fatal fault" not in same.log
    finally:
        same.kill()
