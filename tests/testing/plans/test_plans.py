"""Plans on twins, in virtual time."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mockraft import Controller, SyncController
from mockraft.files.trees import GivenFileError
from mockraft.releases import release
from mockraft.testing.plan import PlanError, PlanOutcome, read_plan, steps_of

from ...rows import each_row


@pytest.fixture
def twin(tmp_path: Path) -> Iterator[SyncController]:
    """Three brokers in two racks: `safe` has three replicas, `single` one, `strict` needs two in sync."""
    with Controller.sync(
        clock="virtual", metadata_version="4.1", features={"eligible.leader.replicas.version": 0}
    ) as real:
        for broker_id, rack in ((1, "a"), (2, "a"), (3, "b")):
            real.start_broker(broker_id, rack=rack, log_dirs=())
        state = real.state
        state.create_topic("safe", replicas=[[1, 2, 3], [2, 3, 1]])
        state.create_topic("single", replicas=[[2]])
        state.create_topic("strict", replicas=[[1, 2]], configs={"min.insync.replicas": "2"})
        real.advance(5_000)
        saved = state.save(tmp_path)
    with Controller.sync(twin_of=saved, clock="virtual", twin_brokers="live") as controller:
        yield controller


def outcome_of(twin: SyncController, *steps: dict[str, Any]) -> PlanOutcome:
    return twin.plan(steps)


def test_losing_a_broker_breaks_what_it_alone_had(twin: SyncController) -> None:
    (lost, back) = outcome_of(twin, {"lose": [2]}, {"start": [2]}).steps
    assert lost.breaks == "offline: single-0; under min ISR: strict-0"
    assert len(lost.after.under_replicated) == 3
    assert 9 <= lost.seconds < 15
    assert back.breaks == ""
    assert back.after == lost.before
    assert {each.type for each in lost.records} == {"PartitionChangeRecord", "BrokerRegistrationChangeRecord"}


def test_losing_a_rack(twin: SyncController) -> None:
    (lost,) = outcome_of(twin, {"lose_rack": "a"}).steps
    assert [partition.leader for partition in twin.state.topic("safe").partitions] == [3, 3]
    assert "strict-0" in lost.after.offline | lost.after.under_min_isr
    assert "single-0" in lost.after.offline


def test_a_rolling_restart_is_safe_for_replicated_topics(twin: SyncController) -> None:
    (restarted,) = outcome_of(twin, {"restart": "all"}).steps
    assert restarted.answers == ()
    assert restarted.breaks == "offline: single-0; under min ISR: strict-0"
    assert restarted.after == restarted.before
    assert [broker.fenced for broker in twin.state.brokers()] == [False] * 3


def test_features_are_upgraded_or_refused_as_kafka_does(twin: SyncController) -> None:
    upgraded, refused = outcome_of(
        twin, {"upgrade": {"metadata.version": "4.2"}}, {"upgrade": {"group.version": 9}}
    ).steps
    assert upgraded.answers == ()
    assert twin.state.features()["metadata.version"] == 29
    assert (upgraded.features, upgraded.answer) == ({"metadata.version": (27, 29)}, "ok: metadata.version 27 → 29")
    assert "FeatureLevelRecord" in [each.type for each in upgraded.records]
    (answer,) = refused.answers
    assert answer.startswith(("INVALID_UPDATE_VERSION: ", "group.version: INVALID_UPDATE_VERSION: "))


def test_unregistering_answers_what_kafka_answers(twin: SyncController) -> None:
    lost, unregistered, unknown = outcome_of(twin, {"shut_down": [3]}, {"unregister": [3]}, {"unregister": [9]}).steps
    assert lost.answers == unregistered.answers == ()
    assert [broker.broker_id for broker in twin.state.brokers()] == [1, 2]
    assert unknown.answers == ("broker 9: BROKER_ID_NOT_REGISTERED: Broker ID 9 is not currently registered",)


def test_draining_moves_every_replica(twin: SyncController) -> None:
    (raised,) = outcome_of(twin, {"replication_factor": {"topic": "single", "factor": 2}}).steps
    assert raised.breaks == ""
    (single,) = twin.state.topic("single").partitions
    assert sorted(single.isr) == sorted(single.replicas) == [2, 3]
    outcome_of(twin, {"reassign": {"topic": "safe", "partition": 0, "replicas": [2, 3]}})
    assert list(twin.state.topic("safe").partitions[0].replicas) == [2, 3]
    outcome_of(twin, {"reassign": {"topic": "safe", "partition": 1, "replicas": [2, 3]}})
    (drained,) = outcome_of(twin, {"drain": [2]}).steps
    assert drained.answers == ()
    assert {n for topic in twin.state.topics() for p in topic.partitions for n in p.replicas} == {1, 3}


def test_a_broker_that_was_fenced_is_started(
    twin: SyncController, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outcome_of(twin, {"shut_down": [2]})
    (before,) = twin.state.topic("single").partitions
    assert before.leader == -1
    with Controller.sync(twin_of=twin.state.save(tmp_path), clock="virtual", twin_brokers="live") as later:
        back, unknown = later.plan([{"start": [2]}, {"start": [9]}]).steps
        assert later.state.topic("single").partitions[0].leader == 2
    assert back.answers == ()
    assert (len(back.before.offline), len(back.after.offline), len(back.after.under_replicated)) == (1, 0, 0)
    assert unknown.answers == ("broker 9 is not registered, and no directories are given",)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_an_unregistered_broker_comes_back_as_the_log_knows_it(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with Controller.sync(clock="virtual", data_dir=data_dir, node_id=9) as real:
        for broker_id in (1, 2):
            real.start_broker(broker_id, rack="a", log_dirs=())
        real.state.create_topic("single", replicas=[[2]])
        real.advance(5_000)
        real.plan([{"shut_down": [2]}, {"unregister": [2]}])
    with Controller.sync(twin_of=data_dir, clock="virtual", twin_brokers="live") as later:
        assert not later.plan([]).is_safe
        (both,) = later.plan([{"start": {"brokers": [2, 7], "rack": "b"}}]).steps
        assert later.state.topic("single").partitions[0].leader == 2
        assert later.state.broker(2).rack == "b"
    assert str(both.step) == "start 2, 7, rack b"
    assert both.answers == ("broker 7 is not registered, and no directories are given",)


def test_brokers_restart_together_as_those_of_another_release(twin: SyncController) -> None:
    argument = {"brokers": [1, 2, 9], "together": True, "release": "4.2"}
    together, rolling = outcome_of(twin, {"restart": argument}, {"restart": {"brokers": "all", "release": "4.3"}}).steps
    assert str(together.step) == "restart 1, 2, 9, together, release 4.2"
    assert together.answers == ("broker 9 does not run",)
    assert together.breaks == "offline: single-0, strict-0; under min ISR: strict-0"
    assert together.after == together.before
    assert rolling.breaks == "offline: single-0; under min ISR: strict-0"
    levels = twin.state.broker(3).features["metadata.version"]
    assert levels.max_version == release("4.3").features["metadata.version"].max_level


def test_a_broker_comes_back_with_another_release(twin: SyncController) -> None:
    old = {
        "start": {"brokers": [7], "directories": ["AAAAAAAAAAAAAAAAAAAAZQ"], "features": {"metadata.version": [7, 26]}}
    }
    back = {"start": {"brokers": [2], "release": "4.1"}}
    _, ok, no, upgrade = outcome_of(twin, {"lose": [2]}, back, old, {"upgrade": {"metadata.version": "4.2"}}).steps
    assert (str(ok.step), ok.answers) == ("start 2, release 4.1", ())
    assert (str(no.step), no.answers) == ("start 7, its directories, its features", ("broker 7 could not register",))
    assert "Broker 2 only supports versions 7-27" in upgrade.answers[0]


def test_some_topics_are_drained(twin: SyncController) -> None:
    outcome_of(twin, {"reassign": {"topic": "single", "partition": 0, "replicas": [1]}})
    (drained,) = outcome_of(twin, {"drain": {"brokers": [1], "topics": ["single", "strict"]}}).steps
    assert (str(drained.step), drained.answers) == ("drain 1, topics single strict", ())
    assert [1 in p.replicas for topic in twin.state.topics() for p in topic.partitions] == [True, True, False, False]


def test_restarts_log_no_refusals(twin: SyncController, caplog: pytest.LogCaptureFixture) -> None:
    outcome_of(twin, {"restart": "all"})
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_a_controller_without_brokers_restarts_none() -> None:
    with Controller.sync(clock="virtual") as controller:
        restarted, waited = controller.plan([{"restart": "all"}, {"wait": 60}]).steps
    assert restarted.answers == ("no broker runs",)
    assert waited.seconds == 60


def test_a_reassignment_to_a_fenced_broker_is_in_progress_until_it_is_cancelled(twin: SyncController) -> None:
    move = {"topic": "single", "partition": 0, "replicas": [1]}
    outcome = outcome_of(
        twin, {"lose": [1]}, {"reassign": move}, {"wait": 60}, {"reassign": {**move, "replicas": None}}
    )
    _, moved, waited, cancelled = outcome.steps
    assert moved.reassignments == waited.reassignments == ("single-0 (adding 1 (fenced), removing 2)",)
    assert waited.to_json()["reassignmentsInProgress"] == [*waited.reassignments]
    assert (str(cancelled.step), cancelled.answer) == ("reassign topic single partition 0 replicas null", "ok")
    assert cancelled.reassignments == ()
    lines = [line for line in str(outcome).splitlines() if "in progress" in line]
    assert lines == ["after step 2 reassignments in progress: 1: single-0 (adding 1 (fenced), removing 2)"]


def test_configs_are_set_removed_and_refused(twin: SyncController) -> None:
    raised, removed, topic, refused, unknown = outcome_of(
        twin,
        {"config": {"broker": "default", "set": {"min.insync.replicas": 2}}},
        {"config": {"broker": "default", "set": {"min.insync.replicas": None}}},
        {"config": {"topic": "strict", "set": {"min.insync.replicas": 1, "unclean.leader.election.enable": True}}},
        {"config": {"topic": "strict", "set": {"retention.ms": "soon"}}},
        {"config": {"topic": "none", "set": {"retention.ms": 1}}},
    ).steps
    assert str(removed.step) == "config broker default set min.insync.replicas=null"
    assert [each.answers for each in (raised, removed, topic)] == [()] * 3
    assert [[each.type for each in step.records] for step in (raised, removed, topic)] == [
        ["ConfigRecord"],
        ["ConfigRecord"],
        ["ConfigRecord"] * 2,
    ]
    assert refused.answer == (
        "strict: INVALID_CONFIG: Invalid value soon for configuration retention.ms: Not a number of type LONG"
    )
    assert unknown.answer == "none: UNKNOWN_TOPIC_OR_PARTITION: The topic 'none' does not exist."
    values = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    assert [(each.type, each.name, each.values) for each in twin.state.configs()] == [("topic", "strict", values)]


def test_a_broker_that_runs_is_started_already(twin: SyncController) -> None:
    (started,) = outcome_of(twin, {"start": [2]}).steps
    assert (started.answer, started.records) == ("ok", [])


def test_elections(twin: SyncController) -> None:
    shut, unclean, preferred = outcome_of(
        twin,
        {"shut_down": [1]},
        {"elect": {"topic": "safe", "partition": 0, "unclean": True}},
        {"elect": {"topic": "safe", "partition": 0}},
    ).steps
    assert shut.breaks == "under min ISR: strict-0"
    assert unclean.answers == ("safe-0: ELECTION_NOT_NEEDED: Leader election not needed for topic partition.",)
    (answer,) = preferred.answers
    assert answer.startswith("safe-0: PREFERRED_LEADER_NOT_AVAILABLE")


def test_a_lost_directory(twin: SyncController) -> None:
    lost, unknown, started, restored = outcome_of(
        twin,
        {"lose_directory": {"broker": 2, "directory": 0}},
        {"lose_directory": {"broker": 3, "directory": 7}},
        {"start": [2]},
        {"restore_directory": {"broker": 2, "directory": twin.state.broker(2).log_dirs[0].id}},
    ).steps
    assert "single-0" in lost.after.offline
    assert unknown.answers == ("broker 3 has no directory 7",)
    assert started.answers == ("broker 2 does not start: all its directories have failed",)
    assert restored.answers == ()
    assert restored.after.offline == frozenset()


def test_too_few_brokers_for_a_replication_factor(twin: SyncController) -> None:
    (raised, waited) = outcome_of(twin, {"replication_factor": {"factor": 4}}, {"wait": 5}).steps
    assert raised.answers[0] == "safe-0: its 4 replicas need as many brokers, and there are 3"
    assert waited.records == []


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ({"drain": [1, 2, 3]}, "safe-0: its 3 replicas need as many brokers, and there are 0"),
        ({"drain": [2]}, "safe-0: its 3 replicas need as many brokers, and there are 2; no replica was moved"),
        ({"shut_down": [2]}, ""),
        ({"replication_factor": {"factor": 2, "topic": "nope"}}, "there is no topic nope"),
        ({"upgrade": {"metadata.version": "9.9"}}, "Unknown metadata.version '9.9'"),
        ({"upgrade": {"group.version": "new"}}, "group.version: new is not a level"),
    ],
)
def test_steps_that_cannot_be_done_are_no_success(twin: SyncController, step: dict[str, Any], answer: str) -> None:
    (done,) = outcome_of(twin, step).steps
    assert bool(done.answers) == bool(answer)
    assert "".join(done.answers[:1]).startswith(answer)
    assert bool(done.records) == (not answer)


def test_the_table_names_the_step_that_breaks(twin: SyncController) -> None:
    outcome = outcome_of(twin, {"wait": 1}, {"lose": [2, 9]})
    assert not outcome.is_safe
    lines = str(outcome).splitlines()
    assert lines[0].split() == ["step", "time", "offline", "under", "min", "ISR", "under-replicated", "answer"]
    assert lines[2].startswith("2  lose 2, 9 ")
    assert lines[2].endswith("broker 9 does not run")
    assert lines[-2:] == [
        "step 2 breaks: offline: single-0; under min ISR: strict-0",
        "at the end: offline: single-0; under min ISR: strict-0",
    ]
    assert outcome.to_json()["steps"][1]["offline"] == [1, 1]  # type: ignore[index,call-overload]


def test_what_was_unusable_before_the_plan_is_not_safe_at_its_end(twin: SyncController) -> None:
    assert (str(outcome_of(twin)), outcome_of(twin).is_safe) == ("no partition is offline or under min ISR", True)
    outcome_of(twin, {"lose": [2]})
    state, waited, back = outcome_of(twin), outcome_of(twin, {"wait": 1}), outcome_of(twin, {"start": [2]})
    assert (state.is_safe, waited.is_safe, back.is_safe) == (False, False, True)
    assert str(state) == "at the end: offline: single-0; under min ISR: strict-0"
    assert state.to_json()["atTheEnd"] == {"offline": ["single-0"], "underMinIsr": ["strict-0"]}
    assert waited.steps[0].breaks == ""


def test_changes_are_those_of_the_virtual_time(twin: SyncController) -> None:
    lost, waited = outcome_of(twin, {"lose": [2]}, {"wait": 30}).steps
    (change,) = lost.changes
    assert change == (lost.seconds, lost.after)
    assert waited.changes == []
    assert lost.to_json()["changes"] == [
        {"seconds": lost.seconds, "offline": 1, "underMinIsr": 1, "underReplicated": 3}
    ]


@each_row(
    ("tree", "error"),
    [
        (None, "a plan is a list of steps"),
        ("restart", "a plan is a list of steps"),
        ({"steps": [], "extra": 1}, "a plan has only `steps`, not extra"),
        ([{"restart": "all", "lose": [1]}], "step 1: a step is a mapping with one key"),
        ([{"restart": "all"}, {"reboot": 1}], "step 2: there is no step 'reboot'"),
        ([{"lose": ["x"]}], "step 1, lose: it takes a list of broker ids, not"),
        ([{"lose": [True]}], "step 1, lose: it takes a list of broker ids, not"),
        ([{"wait": 0}], "it takes 1 to 86400 seconds"),
        ([{"lose_rack": None}], "lose_rack: it takes a text, not None"),
        ([{"unregister": [2**31]}], "it takes a list of broker ids"),
        ([{"lose_directory": {"broker": [1], "directory": 0}}], "broker: it takes a number from 0 to 2147483647, not"),
        (
            [{"reassign": {"topic": "t", "partition": "0", "replicas": [1]}}],
            "partition: it takes a number from 0 to 2147483647, not '0'",
        ),
        ([{"reassign": {"topic": "t", "partition": 0, "replicas": [1, "x"]}}], "replicas: it takes a list of broker"),
        ([{"config": {"topic": "t", "broker": 1, "set": {"a": 1}}}], "it takes a mapping with set, topic, not"),
        ([{"config": {"broker": "all", "set": {"a": 1}}}], "broker: it takes a number from 0 to 2147483647, not 'all'"),
        ([{"config": {"broker": 1, "set": {}}}], "set: it takes a mapping of configs to values"),
        ([{"replication_factor": {"factor": "3"}}], "factor: it takes a number from 0 to 2147483647, not '3'"),
        ([{"elect": {"topic": 3, "partition": 0}}], "topic: it takes a text, not 3"),
        ([{"elect": {"topic": "t", "partition": 0, "unclean": "no"}}], "unclean: it takes true or false"),
        ([{"upgrade": 5}], "it takes a mapping of features to levels"),
        ([{"start": {"release": "4.4"}}], "start: it takes a mapping with brokers, directories"),
        ([{"start": {"brokers": [1], "release": "9.9"}}], "start: release: "),
        ([{"start": {"brokers": [1], "directories": ["x"]}}], "start: directories: "),
        ([{"start": {"brokers": [1], "features": {"metadata.version": 7}}}], r"features: it takes .* to \[min, max\]"),
        (
            [{"start": {"brokers": [1], "features": {"f": [2, 1]}}}],
            "f is supported from one level to the same or a later",
        ),
        ([{"start": {"brokers": [1], "features": {"f": [0, 1.0]}}}], "f is supported from one level to the same or a"),
        ([{"start": {"brokers": [1], "directories": ["AAAAAAAAAAAAAAAAAAAAZQ"] * 2}}], "AAAZQ is there twice"),
        ([{"start": {"brokers": [1], "each": {"1": {"racks": "a"}}}}], "each: it takes a mapping with directories"),
        ([{"start": {"brokers": [1], "release": 4.25}}], "release: 4.25 is no release or level: write it in quotes"),
        ([{"restart": {"brokers": [1, 2, 1], "together": True}}], "brokers: 1 is there twice"),
        ([{"upgrade": {"group.version": 1.0}}], "group.version: a level is a whole number, not 1.0"),
        ([{"upgrade": {"metadata.version": 30.0}}], "30.0 is no release or level: write it in quotes"),
        ([{"drain": {"brokers": [1], "topics": "t"}}], "topics: it takes a list of texts, not 't'"),
        ([{"elect": {"topic": "t"}}], r"it takes a mapping with partition, topic, unclean \(optional\), not"),
    ],
)
def test_plans_that_cannot_be_read(tree: object, error: str) -> None:
    with pytest.raises(PlanError, match=error):
        steps_of(tree)


def test_plan_files(tmp_path: Path) -> None:
    yaml, as_json, wrong = tmp_path / "plan.yaml", tmp_path / "plan.json", tmp_path / "wrong.yaml"
    yaml.write_text("steps:\n- restart: all\n- lose: 2\n- upgrade: {metadata.version: 4.4}\n")
    as_json.write_text('[{"restart": "all"}, {"lose": 2}, {"upgrade": {"metadata.version": 4.4}}]')
    wrong.write_text("- [")
    assert read_plan(yaml) == read_plan(as_json)
    assert [str(each) for each in read_plan(yaml)] == ["restart all", "lose 2", "upgrade metadata.version 4.4"]
    with pytest.raises(GivenFileError, match="not YAML"):
        read_plan(wrong)


def test_a_plan_needs_a_virtual_clock() -> None:
    with Controller.sync() as controller, pytest.raises(ValueError, match='clock="virtual"'):
        controller.plan([{"wait": 1}])
