"""The differences that docs/spark-replay.md lists are those that a replay of the real controller's capture has."""

import re
from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.replay import replay

pytestmark = pytest.mark.real_kafka

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| (\w+) \| `([^`]+)` \| (\S+) \| (\S+) \|", re.MULTILINE)


async def test_a_real_controllers_capture_has_the_listed_differences_on_mockraft_and_no_other() -> None:
    listed = ROW.findall((ROOT / "docs" / "spark-replay.md").read_text())
    assert listed
    async with Controller() as controller:
        exchanges = read_exchanges(ROOT / "tests" / "captures" / "controller-4.3.1.pcap", {19093})
        replayed = await replay(exchanges, controller.host, controller.port)
    assert len(replayed.outcomes) == 858
    found = []
    for outcome in replayed.outcomes:
        assert outcome.failure is None
        for each in outcome.differences:
            live = "offset" if each.path.endswith("highWatermark") else str(each.live)
            found.append(
                (str(outcome.number), outcome.api, re.sub(r"\[[^]]*\]", "[]", each.path), str(each.captured), live)
            )
    assert sorted(found) == sorted(listed)
