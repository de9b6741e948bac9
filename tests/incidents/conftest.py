"""Tests of incidents are what readers paste, so their marks are set here: those that start Kafka's own code need it."""

from __future__ import annotations

import pytest

from ..real_kafka.conftest import one_jvm_for_tools as one_jvm_for_tools
from ..real_kafka.conftest import pytest_collection_modifyitems as pytest_collection_modifyitems
from ..real_kafka.conftest import pytest_terminal_summary as pytest_terminal_summary


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.one_python)
    if "from mockraft.kafka." in item.path.read_text():
        item.add_marker(pytest.mark.real_kafka)
