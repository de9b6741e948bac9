"""docs/captured-tables.md: captures to tables."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_howto_make_tables_of_captures(spark: Any, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables

    captures = [controller_capture]
    frames = tables.frames(spark, captures, ports=[19093])
    messages = tables.messages(frames)
    exchanges = tables.exchanges(frames)
    assert messages.where("api_name = 'BrokerRegistration'").count() == 10
    assert exchanges.columns[-2:] == ["request", "response"]


def test_howto_write_frames_as_parquet(spark: Any, tmp_path: Path, controller_capture: str) -> None:
    from mockraft.spark_replay.spark import tables

    captures, out = [controller_capture], tmp_path / "frames"
    rows = tables.frames_table(spark, captures, ports=[19093]).write_parquet(out)
    assert rows == spark.read.parquet(str(out)).count() == 1726
