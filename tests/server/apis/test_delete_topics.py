import pytest
from mockraft.server.apis import delete_topics
from mockraft.wire import error_codes
from mockraft.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from mockraft.wire.metadata_log_frame import RecordAt
from mockraft.wire.records.remove_topic_record import RemoveTopicRecord

NO_ID = bytes(16)
UNHEARD_OF_ID = bytes(range(16))


def request(*names, ids=()):
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names]
        + [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids],
        timeout_ms=1000,
    )


def said(response):
    """Answers as (name, id, code), sorted: their order is shuffled."""
    return sorted(((each.name, each.topic_id, each.error_code) for each in response.responses), key=repr)


def answers(*expected):
    return sorted(expected, key=repr)


@pytest.fixture
def topics(cluster):
    """Topics a, b and c, and their ids."""
    cluster.start(1)
    cluster.ids = {name: cluster.create_topic(name, [1]) for name in "abc"}
    return cluster


def test_deletes_by_name_and_by_id(topics, ask):
    a, b = topics.ids["a"], topics.ids["b"]
    assert said(ask(topics, request("a", ids=[b]))) == answers(("a", a, 0), ("b", b, 0))
    assert set(topics.controller.image.topics.by_name) == {"c"}


def test_one_record_per_topic_in_one_batch(topics, ask):
    ask(topics, request("a", "c"))
    assert topics.written() == [RecordAt(RemoveTopicRecord(topic_id=topics.ids[name]), 0) for name in "ac"]


def test_reports_unknown_topics_and_deletes_the_rest(topics, ask):
    response = ask(topics, request("a", "nowhere", ids=[UNHEARD_OF_ID]))
    assert said(response) == answers(
        ("a", topics.ids["a"], 0),
        ("nowhere", NO_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION),
        (None, UNHEARD_OF_ID, error_codes.UNKNOWN_TOPIC_ID),
    )
    messages = {each.error_message for each in response.responses}
    assert messages == {
        None,
        "This server does not host this topic-partition.",
        "This server does not host this topic ID.",
    }


def test_topic_named_twice_is_not_deleted(topics, ask):
    a, b, invalid = topics.ids["a"], topics.ids["b"], error_codes.INVALID_REQUEST
    response = ask(topics, request("a", "a", "a", "c", ids=[b, b]))
    assert said(response) == answers(("a", NO_ID, invalid), (None, b, invalid), ("c", topics.ids["c"], 0))
    assert {each.error_message for each in response.responses} == {None, "Duplicate topic name.", "Duplicate topic id."}
    assert a in topics.controller.image.topics.by_id


@pytest.mark.parametrize("times", [1, 2])
def test_name_and_id_of_the_same_topic_are_refused(topics, ask, times):
    a = topics.ids["a"]
    response = ask(topics, request("a", ids=[a] * times))
    assert ("a", a, error_codes.INVALID_REQUEST) in said(response)
    assert "The provided topic name maps to an ID that was already supplied." in [
        each.error_message for each in response.responses
    ]
    assert topics.written() == []


def test_a_topic_is_named_by_one_of_name_and_id(topics, ask):
    both = DeleteTopicState(name="a", topic_id=topics.ids["a"])
    neither = DeleteTopicState(name=None)
    response = ask(topics, DeleteTopicsRequest(topics=[both, neither], timeout_ms=1000))
    assert {(each.error_code, each.error_message) for each in response.responses} == {
        (42, "You may not specify both topic name and topic id."),
        (42, "Neither topic name nor id were specified."),
    }
    assert topics.written() == []


def test_old_versions_name_topics_only(topics, ask):
    response = ask(topics, DeleteTopicsRequest(topic_names=["a", "nowhere"], timeout_ms=1000), 5)
    assert said(response) == answers(("a", NO_ID, 0), ("nowhere", NO_ID, 3))


def test_a_request_that_leaves_no_time_is_over(topics, ask):
    response = ask(topics, DeleteTopicsRequest(topic_names=["a", "b", "b"]), 1)
    assert [(each.name, each.error_code) for each in response.responses] == [("a", 7), ("b", 7), ("b", 7)]
    (nothing_to_do,) = ask(topics, DeleteTopicsRequest(topic_names=["b", "b"]), 1).responses
    assert nothing_to_do.error_code == error_codes.INVALID_REQUEST
    assert topics.written() == []


def test_the_configs_go_with_the_topic(topics, ask):
    topics.set_config("a", "retention.ms", "1")
    ask(topics, request("a"))
    assert (2, "a") not in topics.controller.image.configs


@pytest.mark.parametrize(
    ("version", "code"), [(6, error_codes.TOPIC_DELETION_DISABLED), (2, error_codes.INVALID_REQUEST)]
)
def test_disabled_deletion_is_refused(new_cluster, ask, version, code):
    cluster = new_cluster(delete_topic_enable=False)
    asked = request("a", ids=[UNHEARD_OF_ID]) if version >= 6 else DeleteTopicsRequest(topic_names=["a", "b"])
    response = ask(cluster, asked, version)
    assert [each.error_code for each in response.responses] == [code, code]
    assert {each.error_message for each in response.responses} == {None}


def test_the_answers_are_shuffled_by_the_seed(new_cluster, ask):
    def order(seed):
        cluster = new_cluster(seed=seed)
        return [each.name for each in ask(cluster, request(*map(str, range(30)))).responses]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_returns_an_error_for_each_topic():
    response = delete_topics.error(request("a", ids=[UNHEARD_OF_ID]), error_codes.NOT_CONTROLLER, "elsewhere")
    assert said(response) == answers(("a", NO_ID, 41), (None, UNHEARD_OF_ID, 41))
