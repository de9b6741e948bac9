from collections.abc import Sequence

import pytest
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.messages.delete_topics_response import DeleteTopicsResponse
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord

from ...conftest import Cluster, uuid
from ...rows import each_row

NO_ID = bytes(16)
UNHEARD_OF_ID = bytes(range(16))


IDS = {name: uuid(ord(name)) for name in "abc"}
Answer = tuple[str | None, bytes, int]


def request(*names: str, ids: Sequence[bytes] = ()) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names]
        + [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids],
        timeout_ms=1000,
    )


def said(response: DeleteTopicsResponse) -> list[Answer]:
    """Answers as (name, id, code), sorted: their order is shuffled."""
    return sorted(((each.name, each.topic_id, each.error_code) for each in response.responses), key=repr)


def answers(*expected: Answer) -> list[Answer]:
    return sorted(expected, key=repr)


@pytest.fixture
def topics(cluster: Cluster) -> Cluster:
    """Topics a, b and c."""
    cluster.start(1)
    for name, topic_id in IDS.items():
        cluster.create_topic(name, [1], topic_id=topic_id)
    return cluster


def test_one_record_per_topic_in_one_batch(topics: Cluster) -> None:
    topics.ask(request("a", "c"))
    assert topics.written() == [RecordAt(RemoveTopicRecord(topic_id=IDS[name]), 0) for name in "ac"]


def test_topics_beyond_one_batch_stay(topics: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockraft.server.controller.topics.topics.RECORDS_PER_BATCH_MAX", 2)
    codes = [code for _, _, code in said(topics.ask(request("a", "b", "c")))]
    assert sorted(codes) == [error_codes.UNKNOWN_SERVER_ERROR, 0, 0]
    assert len(topics.written()) == 2


def test_reports_unknown_topics_and_deletes_the_rest(topics: Cluster) -> None:
    response = topics.ask(request("a", "nowhere", ids=[UNHEARD_OF_ID]))
    assert said(response) == answers(
        ("a", IDS["a"], 0),
        ("nowhere", NO_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UNHEARD_OF_ID, error_codes.UNKNOWN_TOPIC_ID),
    )
    messages = {each.error_message for each in response.responses}
    assert messages == {
        None,
        "This server does not host this topic-partition.",
        "This server does not host this topic ID.",
    }


@pytest.mark.parametrize("times", [1, 2])
def test_name_and_id_of_the_same_topic_are_refused(topics: Cluster, times: int) -> None:
    a = IDS["a"]
    response = topics.ask(request("a", ids=[a] * times))
    assert ("a", a, error_codes.INVALID_REQUEST) in said(response)
    assert "The provided topic name maps to an ID that was already supplied." in [
        each.error_message for each in response.responses
    ]
    assert topics.written() == []


def test_a_request_that_leaves_no_time_is_over(topics: Cluster) -> None:
    response = topics.ask(DeleteTopicsRequest(topic_names=["a", "b", "b"]), 1)
    assert [(each.name, each.error_code) for each in response.responses] == [("a", 7), ("b", 7), ("b", 7)]
    (nothing_to_do,) = topics.ask(DeleteTopicsRequest(topic_names=["b", "b"]), 1).responses
    assert nothing_to_do.error_code == error_codes.INVALID_REQUEST
    assert topics.written() == []


@each_row(("version", "code"), [(6, error_codes.TOPIC_DELETION_DISABLED), (2, error_codes.INVALID_REQUEST)])
def test_disabled_deletion_is_refused(new_cluster: type[Cluster], version: int, code: int) -> None:
    cluster = new_cluster(delete_topic_enable=False)
    asked = request("a", ids=[UNHEARD_OF_ID]) if version >= 6 else DeleteTopicsRequest(topic_names=["a", "b"])
    response = cluster.ask(asked, version)
    assert [each.error_code for each in response.responses] == [code, code]
    assert {each.error_message for each in response.responses} == {None}


def test_the_answers_are_shuffled_by_the_seed(new_cluster: type[Cluster]) -> None:
    def order(seed: int) -> list[str | None]:
        cluster = new_cluster(seed=seed)
        return [each.name for each in cluster.ask(request(*map(str, range(30)))).responses]

    assert order(1) == order(1)
    assert order(1) != order(2)
