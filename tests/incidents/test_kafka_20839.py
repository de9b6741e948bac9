"""KAFKA-20839: a metadata log without a record of metadata.version stays at the lowest level."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.kafka.processes import KafkaController, KafkaProcessError, KafkaTool
from mockraft.wire import metadata_log_frame, record_batch
from mockraft.wire.records.no_op_record import NoOpRecord


def forget_the_levels(log: Path) -> None:
    """Keep the control records at the head of a log, and put one NoOpRecord in place of all others."""
    data = log.read_bytes()
    head = next(iter(record_batch.read_headers(data)))
    value = metadata_log_frame.encode(NoOpRecord(), 0)
    tail = record_batch.encode([value], base_offset=head.last_offset + 1, leader_epoch=1, timestamp_ms=0)
    log.write_bytes(data[: head.end] + tail)


def start(folder: Path, version: str) -> KafkaController:
    """Start Kafka's controller on a log of its release, without the levels."""
    with Controller.sync(data_dir=folder / "log", release=version) as controller:
        cluster_id = controller.cluster_id
    forget_the_levels(folder / "log" / "__cluster_metadata-0" / f"{0:020d}.log")
    kafka = KafkaController(folder, cluster_id, version=version)
    kafka.start()
    return kafka


def test_controller_of_3_9_falls_back_to_a_level_that_cannot_be_raised(tmp_path: Path) -> None:
    kafka = start(tmp_path, "3.9.2")
    try:
        kafka.wait_for_log("No metadata.version feature level record was found in the log. Treating the log as")
        kafka.wait_for_log("cannot register yet because the metadata.version is still 3.0-IV1")
        raise_it = ("--bootstrap-controller", kafka.bootstrap, "upgrade", "--feature", "metadata.version=21")
        with pytest.raises(KafkaProcessError, match="Direct-to-controller communication is not supported"):
            KafkaTool("kafka-features").run(*raise_it)
    finally:
        kafka.kill()


def test_controller_of_4_4_exits(tmp_path: Path) -> None:
    kafka = start(tmp_path, "4.4.0")
    try:
        kafka.wait_for_log("IllegalStateException: Unknown metadata version for FeaturesImage")
        assert kafka.wait() == 1
    finally:
        kafka.kill()
