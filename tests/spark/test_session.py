"""The session that the other tests share."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytestmark = pytest.mark.spark


def test_the_session_counts_in_utc_and_on_two_cores(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.defaultParallelism == 2
    assert spark.range(10, numPartitions=2).count() == 10


def test_workers_are_forked_from_a_process_that_has_imported_mockraft(spark: Any) -> None:
    def main_module(batches: Any) -> Any:
        import sys

        for batch in batches:
            names = [sys.modules["__main__"].__file__] * batch.num_rows
            yield pa.RecordBatch.from_pydict({"name": names})

    (row,) = spark.range(1).mapInArrow(main_module, "name string").collect()
    assert Path(row.name).name == "worker_daemon.py"


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[4,2]", 4), ("local[*]", os.cpu_count())]
)
def test_on_one_machine_a_shuffle_has_two_parts_a_core(master: str, cores: int) -> None:
    from mockraft.spark_replay.spark.session import local_cores

    assert local_cores(master) == cores
