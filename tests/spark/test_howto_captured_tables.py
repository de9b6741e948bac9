"""docs/captured-tables.md: captures to tables."""

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
