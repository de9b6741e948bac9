"""The session that the other tests share."""

import os
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_the_session_counts_in_utc_and_on_two_cores(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.defaultParallelism == 2
    assert spark.range(10, numPartitions=2).count() == 10


@pytest.mark.parametrize(
    ("master", "cores"), [("local", 1), ("local[3]", 3), ("local[4,2]", 4), ("local[*]", os.cpu_count())]
)
def test_on_one_machine_a_shuffle_has_two_parts_a_core(master: str, cores: int) -> None:
    from mockraft.spark_replay.spark.session import local_cores

    assert local_cores(master) == cores
