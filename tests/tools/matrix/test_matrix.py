"""The page of what was shown for each release equals its evidence, and the evidence is whole and current."""

from __future__ import annotations

import pytest
from mockraft.conformance import baseline
from mockraft.releases import SUPPORTED

from tools.matrix import captured, controllers, page
from tools.pages.marked_text import marked

from ...budgets import soak
from ...rows import each_row

pytestmark = pytest.mark.one_python

FROM_LIBRDKAFKA = {f"rdkafka: MetadataRequest v{version}: 3 bytes too many, paired" for version in (12, 13)}
"""Requests that no codec can write again: see the page."""


def test_page_is_what_the_evidence_says() -> None:
    """`make matrix` writes it anew."""
    assert marked(page.PAGE.read_text()) == page.as_markdown() + "\n"
    assert marked(page.README.read_text()) == page.support() + "\n"


def test_every_release_has_a_capture_and_a_compared_controller() -> None:
    assert [row["kafka"] for row in captured.read()] == [*SUPPORTED]
    assert [row["kafka"] for row in controllers.read()] == [*SUPPORTED]


@each_row("row", controllers.read())
def test_controllers_were_compared_with_the_kept_runs_and_equal_them(row: controllers.Row) -> None:
    """`make matrix ARGS=controllers` compares anew."""
    assert row["cases"] == len(baseline.read(f"kafka-{row['kafka']}").verdicts)
    assert row["differing"] == []


@soak
@each_row("row", captured.read())
def test_captures_of_real_clusters_are_decoded_as_tshark_and_kio_do(row: captured.Row) -> None:
    judged = captured.judge(captured.capture_of(row["kafka"]), row["ports"])
    assert judged.items() <= row.items()
    assert judged["frames"] > 500
    assert set(judged["failures"]) <= FROM_LIBRDKAFKA
    assert judged["decoded"] == judged["frames"] - len(judged["failures"])
    assert judged["by_tshark"] == judged["frames"]
    assert judged["by_kio"] == judged["known_to_kio"] > 500
    assert {"BrokerRegistration", "BrokerHeartbeat", "Envelope", "Fetch", "Produce", "JoinGroup"} <= set(judged["apis"])
