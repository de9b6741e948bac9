"""PySpark 4.0 and 4.1 read captures; what they lack is refused by name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def data_source(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The sources as PySpark 4.0 imports them: it has neither filters nor streams with limits."""
    from pyspark.sql import datasource

    monkeypatch.delattr(datasource, "Filter", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    monkeypatch.delitem(sys.modules, "mockraft.spark_replay.spark.stream_reader", raising=False)
    from mockraft.spark_replay.spark import data_source

    monkeypatch.setattr(data_source, "pyspark_version", "4.0.1")
    return data_source


def test_batch_reader_needs_no_newer_pyspark(data_source: ModuleType, controller_capture: str) -> None:
    source = data_source.KafkaFramesSource({"path": controller_capture, "level": "frames"})
    reader = source.reader(source.schema())
    rows = sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))
    assert rows == 1726


def test_streams_and_filters_are_refused_in_one_line(data_source: ModuleType, controller_capture: str) -> None:
    source = data_source.KafkaPcapSource({"path": controller_capture, "pushFilters": "true"})
    with pytest.raises(
        data_source.PySparkTooOldError, match=r"^streams of captures need PySpark 4\.2 .* 4\.0\.1; spark"
    ):
        source.streamReader(source.schema())
    with pytest.raises(data_source.OptionError, match=r"^option pushFilters: needs PySpark 4\.1 or later, .* 4\.0\.1$"):
        source.reader(source.schema())


def test_followed_stream_is_refused_when_it_is_made(
    data_source: ModuleType, spark: Any, controller_capture: str
) -> None:
    from mockraft.spark_replay.spark import tables

    with pytest.raises(data_source.PySparkTooOldError, match=r"^streams of captures need PySpark 4\.2"):
        tables.stream_frames(spark, controller_capture)
