"""The page of a report, with and without a replay."""

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches, decode_record_batches
from mockraft.spark_replay.report import captured, replay_sections
from mockraft.spark_replay.report.captured import traffic_of_captures
from mockraft.spark_replay.report.page import write_report
from mockraft.spark_replay.report.replayed import Replayed
from mockraft.spark_replay.report.sections import brokers_by_silence, event_rows, heartbeat_rows, totals
from mockraft.spark_replay.report.sources import Captures, SourceError, traffic_of_tables

from ...rows import each_row
from .conftest import CAPTURES, HOSTILE
from .rows import FETCH, HEARTBEAT, diffs, results

VOID = {"meta", "img", "br", "input", "link"}


class Outline(HTMLParser):
    """Ids, addresses and the tree of a page; what is not closed as it was opened is kept as wrong."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.wrong: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.wrong += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID and (self.get_starttag_text() or "")[-2:] != "/>":
            self._open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="session")
def page(tables: Path, replayed: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("report") / "report.html"
    write_report(out, tables, replay=replayed, title=HOSTILE)
    return out.read_text(encoding="utf-8")


def test_page_is_valid_html_with_internal_links_only(page: str) -> None:
    outline = Outline(page)
    assert outline.wrong == []
    assert len(outline.ids) == len(set(outline.ids))
    assert {address for address in outline.addresses if not address.startswith("#")} == set()
    assert {address[1:] for address in outline.addresses} <= set(outline.ids)
    assert outline.tags.count("script") == 1


def test_the_style_is_as_it_was_written(page: str) -> None:
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert style.strip() == (Path(captured.__file__).parent / "report.css").read_text().strip()


def test_captured_text_is_escaped(page: str) -> None:
    assert HOSTILE not in page
    assert page.count("document.title=") == page.count("&lt;script&gt;document.title=")
    assert "<img" not in page
    assert "&lt;b&gt;epochs&lt;/b&gt;" in page


def test_page_shows_capture_and_replay(page: str) -> None:
    sections = re.findall(r'<section id="([\w-]+)">', page)
    assert sections == ["replay", "timeline", "apis", "latency", "heartbeats", "errors", "clients", "not-read"]
    assert "2 of 3 as captured" in page
    assert "mockraft decode --response BrokerHeartbeat --version 2 --frame 0000000" in page
    assert "1 of 2 rules never fired" in page
    assert page.count("<svg") == 6


def test_reports_a_capture_without_tables() -> None:
    traffic, frames = traffic_of_captures(Captures([CAPTURES / "controller-4.3.1.pcap"], [19093]), (), lambda *_: None)
    counted: dict[str, Any] = totals(traffic)
    assert traffic.frames == counted["roundtrip"]["same"] == 1726
    assert [each["who"] for each in event_rows(traffic) if each["kind"] == "new leader"] == ["node 3000"]
    brokers, alarm_ns = brokers_by_silence(traffic)
    rows: list[dict[str, Any]] = heartbeat_rows(brokers, alarm_ns, traffic.first_ns or 0)
    assert [(row["broker"], len(row["gaps"])) for row in rows] == [("broker 1", 1), ("broker 2", 2)]
    assert frames == {}


@each_row("name", ["frames", "records"])
def test_events_of_the_log_are_the_same_from_captures_frames_and_records(tmp_path: Path, name: str) -> None:
    capture = CAPTURES / "controller-4.3.1.pcap"
    frames = list(read_frames(capture, [19093]))
    made = frames if name == "frames" else decode_record_batches(frames)
    pq.write_table(pa.Table.from_batches(decode_batches(frames)), tmp_path / "messages.parquet")
    pq.write_table(pa.Table.from_batches(made), tmp_path / f"{name}.parquet")
    of_tables = event_rows(traffic_of_tables(tmp_path, lambda *_: None))
    traffic, _ = traffic_of_captures(Captures([capture], [19093]), (), lambda *_: None)
    of_captures = [row for row in event_rows(traffic) if row["kind"] != "midstream"]
    assert of_tables == of_captures
    counts = Counter(row["kind"] for row in of_tables)
    # The log has three times at which broker 2 was fenced, and three of broker 1; each registered again once it was.
    assert [counts[kind] for kind in ("registered", "fenced", "unfenced", "new leader")] == [5, 6, 5, 1]


def test_report_without_data_states_it(tmp_path: Path, tables: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    schema = pq.read_schema(tables / "messages" / "part-0.parquet")
    pq.write_table(pa.Table.from_batches([], schema), folder / "messages.parquet")
    found: dict[str, Any] = write_report(tmp_path / "r.html", folder)
    assert (tmp_path / "r.html").stat().st_mode & 0o777 == 0o600
    assert found["total"]["frames"] == 0
    assert "Every frame was decoded" in (tmp_path / "r.html").read_text()


@each_row(
    ("name", "content", "expected"),
    [("frames.parquet", b"", "has no table messages"), ("messages.parquet", b"not Parquet", "is not a Parquet table")],
)
def test_reports_unreadable_tables(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=expected):
        write_report(tmp_path / "r.html", tmp_path)


def test_reports_missing_or_mistyped_column(tmp_path: Path, tables: Path) -> None:
    whole = pq.read_table(tables / "messages")
    pq.write_table(whole.drop_columns(["body"]), tmp_path / "messages.parquet")
    with pytest.raises(SourceError, match="lacks the columns body"):
        write_report(tmp_path / "r.html", tmp_path)
    at = whole.schema.get_field_index("body")
    structs = pa.array([{"value": b"x"}] * len(whole))
    pq.write_table(whole.set_column(at, "body", structs), tmp_path / "messages.parquet")
    with pytest.raises(SourceError, match="column body of messages is struct"):
        write_report(tmp_path / "r.html", tmp_path)


def test_reports_invalid_capture_by_name(tmp_path: Path) -> None:
    (tmp_path / "no.pcap").write_bytes(b"nothing of that kind")
    with pytest.raises(SourceError, match=r"no\.pcap"):
        write_report(tmp_path / "r.html", Captures([tmp_path / "no.pcap"]))


def test_outcomes_are_counted_by_api_and_left_out_ones_are_not_sent() -> None:
    replayed = Replayed()
    left_out = {"status": "left_out", "equal": None, "raw_equal": None, "detail": "no answer", "latency_ns": None}
    replayed.add_results(
        results({}, {"equal": False, "raw_equal": False}, {"status": "timeout", "equal": False}, left_out)
    )
    assert (replayed.sent, replayed.same) == (3, 1)
    result: dict[str, Any] = replay_sections.replay_totals(replayed)
    (row,) = result["apis"]
    assert (row["sent"], row["same"], row["different"], row["noAnswer"], row["leftOut"]) == (3, 1, 1, 1, 1)


def test_differences_are_grouped_by_path_with_first_example() -> None:
    first = Replayed()
    first.add_diffs(diffs({"number": 9, "path": "topics[4].name"}, {"number": 8, "path": "topics[foo].name"}))
    first.add_diffs(diffs({"number": 3, "path": "topics[1].name"}, {"api_key": FETCH, "path": "x"}))
    assert dict(first.found) == {(HEARTBEAT, "topics[].name", "changed"): 3, (FETCH, "x", "changed"): 1}
    assert first.examples[HEARTBEAT, "topics[].name", "changed"]["path"] == "topics[1].name"
    row: dict[str, Any] = replay_sections.differences(first)[0]
    assert (row["path"], row["total"], row["example"]["number"]) == ("topics[].name", 3, 3)


def test_excused_values_are_no_difference_and_unused_rules_are_reported() -> None:
    replayed = Replayed()
    replayed.add_diffs(diffs({"kind": "volatile_ok", "rule": "throttle"}, {"kind": "volatile_ok", "rule": "throttle"}))
    result: dict[str, Any] = replay_sections.rules(
        replayed, [{"rule": "throttle", "fired": 0}, {"rule": "epochs", "fired": 0}]
    )
    assert replayed.found == []
    assert result["fired"] == [{"rule": "throttle", "fired": 2}]
    assert [row["rule"] for row in result["never"]] == ["epochs"]
    assert not result["own"]


def test_rules_of_the_user_that_fired_are_told() -> None:
    own: dict[str, Any] = replay_sections.rules(Replayed(), [{"rule": "epochs", "fired": 1, "override": True}])
    unused: dict[str, Any] = replay_sections.rules(Replayed(), [{"rule": "epochs", "fired": 0, "override": True}])
    assert (own["own"], unused["own"]) == (True, False)
