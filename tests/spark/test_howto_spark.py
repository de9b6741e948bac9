"""docs/spark.md: the messages of a folder that grows."""

import os
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_howto_read_a_folder_that_grows(spark: Any, controller_capture: str, tmp_path: Path) -> None:
    from mockraft.spark_replay.spark import tables
    from mockraft.spark_replay.spark.data_source import register

    folder, ring, checkpoint = tmp_path / "tables", str(tmp_path / "ring"), str(tmp_path / "checkpoint")
    os.mkdir(ring)
    copyfile(controller_capture, f"{ring}/whole.pcap")
    os.utime(f"{ring}/whole.pcap", (1_000_000_000, 1_000_000_000))
    copyfile(controller_capture, f"{ring}/written_to_still.pcap")

    register(spark)
    frames = spark.readStream.format("kafka_frames").option("ports", "19093").option("quietSeconds", 3600).load(ring)
    query = (
        tables.messages(frames, body="json")
        .writeStream.option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(f"{folder}/messages")
    )
    query.awaitTermination()

    assert spark.read.parquet(f"{folder}/messages").where("roundtrip").count() == 1726
