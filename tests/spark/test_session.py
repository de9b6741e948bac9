"""The session that the other tests share."""

from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_the_session_counts_in_utc_and_on_two_cores(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.defaultParallelism == 2
    assert spark.range(10, numPartitions=2).count() == 10
