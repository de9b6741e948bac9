"""Points of a history, and what changes between them."""

from pathlib import Path

import pytest
from mockraft import Controller
from mockraft.twin import History, SourceError, changes, each_change, read_history
from mockraft.twin.history import time_text
from mockraft.wire.records.config_record import ConfigRecord
from mockraft.wire.records.feature_level_record import FeatureLevelRecord

from .directories import write_directory


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return read_history(write_directory(tmp_path_factory.mktemp("source") / "data"))


def test_an_offset_is_the_state_after_that_record(history: History) -> None:
    created = next(each.offset for each in history.records() if type(each.record).__name__ == "TopicRecord")
    before, after = history.moments(created - 1, created)
    assert (list(before.image.topics.by_name), list(after.image.topics.by_name)) == ([], ["orders"])
    assert after.id.end_offset == created + 1


def test_negative_offsets_count_from_the_end(history: History) -> None:
    last, before_last = history.moments(-1, "-2")
    assert last.id.end_offset == history.end_offset == before_last.id.end_offset + 1


def test_a_time_is_the_state_after_the_last_record_up_to_then(history: History) -> None:
    for logged in history.records():
        moment = history.moment(time_text(logged.timestamp_ms))
        assert moment.id.end_offset > logged.offset
        assert moment.timestamp_ms == logged.timestamp_ms


def test_a_time_without_a_zone_is_utc(history: History) -> None:
    last = list(history.records())[-1]
    assert history.end_of(time_text(last.timestamp_ms).removesuffix("Z")) == history.end_offset


@pytest.mark.parametrize("point", ["99999", "-999", "1999-01-01T00:00:00"])
def test_points_outside_are_refused_with_what_there_is(history: History, point: str) -> None:
    with pytest.raises(SourceError, match=rf"there is no state at {point}; it has the records 0 to \d+"):
        history.moment(point)


def test_a_point_that_is_none_is_refused(history: History) -> None:
    with pytest.raises(SourceError, match="'yesterday' is neither an offset nor a time"):
        history.moment("yesterday")


def test_changes_name_what_records_did(history: History) -> None:
    texts = [str(change) for change in changes(history.moment(0).image, history.moment().image)]
    assert "feature metadata.version: level 0 → 33" in texts
    assert "broker 1: registered" in texts
    assert "broker 2: state fenced" in texts
    assert any(text.startswith("topic orders: created with 3 partitions, replication factor 2, id ") for text in texts)
    assert "config of topic payments: retention.ms (unset; Kafka's default is 604800000) → 1000" in texts
    assert "config of broker (default): log.retention.ms (unset) → 60000" in texts


def test_partitions_that_fall_below_min_isr_or_reach_it_again_are_listed(tmp_path: Path) -> None:
    default = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    with Controller.sync(clock="virtual", brokers=2, data_dir=tmp_path / "data", node_id=7) as controller:
        state = controller.state
        state.create_topic("t", replicas=[[1, 2]])
        state.fence(2)
        state.append([default])
        state.append([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=None)])
        history = read_history(tmp_path / "data")
    texts = [str(change) for _, change in each_change(history, history.moment(0), history.moment())]
    assert [text for text in texts if text.startswith("topic t partition 0: min.insync")] == [
        "topic t partition 0: min.insync.replicas met → not met (1 of 2 in sync)",
        "topic t partition 0: min.insync.replicas not met (1 of 2 in sync) → met",
    ]


def test_a_directory_that_went_offline_is_listed_with_its_partitions(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual", data_dir=tmp_path / "data", node_id=7) as controller:
        broker = controller.start_broker(1, log_dirs=(tmp_path / "d0", tmp_path / "d1"))
        controller.state.create_topic("t", replicas=[[1], [1]])
        controller.advance(5_000)
        on_second = broker.log_dirs[str(tmp_path / "d1")].directory_id
        lost = next(each for each in controller.state.topic("t").partitions if each.directories == (on_second,))
        broker.fail_log_dir(tmp_path / "d1")
        controller.advance(5_000)
        broker.kill()
        controller.start_broker(1, log_dirs=(tmp_path / "d0",))
        history = read_history(tmp_path / "data")
    texts = [str(change) for _, change in each_change(history, history.moment(0), history.moment())]
    assert (
        f"broker 1: directory {on_second} not registered any more: offline, or removed; it had t-{lost.partition}"
        in texts
    )
    assert texts.count("broker 1: restarted without a controlled shutdown") == 1


def test_no_restart_is_called_unclean_at_a_level_that_does_not_record_shutdowns(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual", data_dir=tmp_path / "data", release="3.9") as controller:
        features = {"metadata.version": (4, 21), "kraft.version": (0, 1)}
        controller.start_broker(1, features=features)
        controller.state.append([FeatureLevelRecord(name="metadata.version", feature_level=6)])
        controller.brokers[1].kill()
        controller.advance(20_000)
        controller.start_broker(1, features=features)
        history = read_history(tmp_path / "data")
    texts = [str(change) for _, change in each_change(history, history.moment(0), history.moment())]
    assert any(text.startswith("broker 1: incarnation ") for text in texts)
    assert "broker 1: restarted without a controlled shutdown" not in texts


def test_a_fencing_after_a_controlled_shutdown_says_so(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual", data_dir=tmp_path / "data", node_id=7) as controller:
        for broker_id in (1, 2):
            controller.start_broker(broker_id)
        controller.state.create_topic("orders", replicas=[[2, 1], [1, 2]])
        controller.advance(5_000)
        controller.plan([{"shut_down": [2]}, {"lose": [1]}])
        found = read_history(tmp_path / "data")
    texts = [str(change) for _, change in each_change(found, *found.moments(0, None))]
    assert "broker 2: state in controlled shutdown → fenced after a controlled shutdown" in texts
    assert "broker 1: state unfenced → fenced" in texts


def test_changes_of_partitions_have_both_values(history: History) -> None:
    fence = next(each.offset for each in reversed([*history.records()]) if getattr(each.record, "fenced", 0) == 1)
    base_offset = next(each.header.base_offset for each in history.batches if each.header.last_offset >= fence)
    texts = [str(change) for change in changes(history.moment(base_offset - 1).image, history.moment().image)]
    assert "broker 2: state unfenced → fenced" in texts
    assert "topic orders partition 1: leader 2 → 1" in texts
    assert "topic orders partition 1: ISR [2, 1] → [1]" in texts
    assert "topic payments partition 0: leader 2 → none" in texts


def test_partitions_of_a_new_topic_that_cannot_be_used_are_listed(tmp_path: Path) -> None:
    with Controller.sync(clock="virtual", brokers=2, data_dir=tmp_path / "data", node_id=7) as controller:
        state = controller.state
        state.create_topic("fine", partitions=1, replicas=[[1]])
        state.create_topic("gone", partitions=2, replicas=[[2], [1]])
        state.create_topic("strict", partitions=1, replicas=[[1, 2]], configs={"min.insync.replicas": "2"})
        state.fence(2)
        found = read_history(tmp_path / "data")
    texts = [str(change) for change in changes(found.moment(0).image, found.moment().image)]
    assert [text for text in texts if " partition " in text] == [
        "topic gone partition 0: leader none",
        "topic strict partition 0: ISR [1], fewer than the 2 of min.insync.replicas",
    ]


def test_each_change_has_the_offset_after_which_it_is_there(history: History) -> None:
    found = [*each_change(history, *history.moments(0, None))]
    assert [at.offset for at, _ in found] == sorted(at.offset for at, _ in found)
    by_text = {str(change): at for at, change in found}
    for text, unfenced in (("broker 2: state fenced → unfenced", True), ("broker 2: state unfenced → fenced", False)):
        before, after = history.moments(by_text[text].offset - 1, by_text[text].offset)
        fenced = [moment.image.cluster.brokers[2].fenced for moment in (before, after)]
        assert fenced == [unfenced, not unfenced]
        assert after.timestamp_ms == by_text[text].timestamp_ms


def test_each_change_leads_to_the_state_at_the_end(history: History) -> None:
    middle = history.end_offset // 2
    before, after = history.moments(middle, -2)
    offsets = [at.offset for at, _ in each_change(history, before, after)]
    assert changes(before.image, after.image) == []
    assert offsets
    assert all(middle < offset <= history.end_offset - 2 for offset in offsets)


def test_nothing_changes_between_a_point_and_itself(history: History) -> None:
    assert changes(*(moment.image for moment in history.moments(-1, -1))) == []


def test_reversed_changes_undo(history: History) -> None:
    texts = [str(change) for change in changes(history.moment().image, history.moment(0).image)]
    assert {"broker 1: unregistered", "topic orders: deleted"} <= {*texts}


def test_a_record_that_does_not_fit_ends_the_state(tmp_path: Path, history: History) -> None:
    registered = next(each.offset for each in history.records() if type(each.record).__name__ == "RegisterBrokerRecord")
    torn = History(tmp_path, None, [each for each in history.batches if each.header.last_offset != registered])
    moment = torn.moment()
    assert 0 < moment.id.end_offset < history.end_offset
    assert "cannot be applied" in torn.notes[0]


def test_a_topic_without_partitions_and_a_config_that_is_no_number_are_compared(history: History) -> None:
    created = next(each.offset for each in history.records() if type(each.record).__name__ == "TopicRecord")
    before, after = history.moments(created - 1, created)
    after.image.apply(ConfigRecord(resource_type=2, resource_name="orders", name="min.insync.replicas", value="x"), 0)
    assert any("orders" in line for line in map(str, changes(before.image, after.image)))


def test_a_time_may_be_beyond_the_year_9999() -> None:
    assert time_text(10**17) == f"{10**17} ms after 1970"
