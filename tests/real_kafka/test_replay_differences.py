"""The differences that docs/spark-replay.md lists are those that replays of the real captures have, and no other."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mockraft.double.process import MockraftController
from mockraft.kafka.processes import KafkaController, random_uuid
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.replay import Outcome, replay
from mockraft.wire import error_codes

from ..budgets import soak

pytestmark = pytest.mark.real_kafka

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "spark-replay.md").read_text()
CAPTURES = ROOT / "tests" / "captures"
BY_EXCHANGE = re.compile(r"^\| (\d+) \| (\w+) \| `([^`]+)` \| (\S+) \| (\S+) \|", re.MULTILINE)
BY_ANSWER = re.compile(r"^\| ([\w, ]+) \| (\d+) \| (closed|as captured|otherwise|[A-Z_, ]+) \|", re.MULTILINE)

AnyController = KafkaController | MockraftController


@pytest.fixture(params=[pytest.param("kafka", marks=soak), "mockraft"])
def controller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyController]:
    made: AnyController
    if request.param == "mockraft":
        made = MockraftController(tmp_path, random_uuid())
    else:
        made = KafkaController(tmp_path, random_uuid())
        made.format()
    try:
        made.start()
        made.wait_until_running()
        yield made
    finally:
        made.kill()


async def test_a_real_controllers_capture_has_the_listed_differences_on_any_controller(
    controller: AnyController,
) -> None:
    listed = BY_EXCHANGE.findall(DOCUMENT)
    assert listed
    exchanges = read_exchanges(CAPTURES / "controller-4.3.1.pcap", {19093})
    replayed = await replay(exchanges, controller.host, controller.port)
    assert len(replayed.outcomes) == 858
    found = []
    for outcome in replayed.outcomes:
        assert outcome.failure is None
        for each in outcome.differences:
            live = "offset" if each.path.endswith("highWatermark") else str(each.live)
            path = re.sub(r"\[[^]]*\]", "[]", each.path)
            found.append((str(outcome.captured.number), outcome.api, path, str(each.captured), live))
    assert sorted(found) == sorted(listed)


async def test_recorded_broker_requests_are_answered_as_listed_by_any_controller(controller: AnyController) -> None:
    exchanges = read_exchanges(CAPTURES / "brokers-4.3.1.pcap", {19192, 19292})
    replayed = await replay(exchanges, controller.host, controller.port)
    found = Counter((outcome.api, answered(outcome)) for outcome in replayed.outcomes)
    listed: set[tuple[str, str]] = set()
    for apis, count, how in BY_ANSWER.findall(DOCUMENT):
        rows = {(api, how) for api in apis.split(", ")}
        assert sum(found[row] for row in rows) == int(count), (apis, how)
        listed |= rows
    assert listed == set(found)


def answered(outcome: Outcome) -> str:
    """In one word: closed, as captured, the error codes that the captured answer had not, or otherwise."""
    if outcome.failure is not None:
        return "closed"
    codes = {
        error_codes.name(each.live)
        for each in outcome.differences
        if each.path.endswith("errorCode") and isinstance(each.live, int)
    }
    return ", ".join(sorted(codes)) or ("otherwise" if outcome.differences else "as captured")
