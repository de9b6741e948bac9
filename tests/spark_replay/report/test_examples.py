import json
import shlex

from mockraft.spark_replay.report.examples import decode_command, noted, request_text, response_text, side_by_side
from mockraft.wire.connection import write_request, write_response
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.broker_heartbeat_response import BrokerHeartbeatResponse

from ...cli.cli import invoke

REQUEST = write_request(BrokerHeartbeatRequest(broker_id=5), 1, 7, "<script>alert(1)</script>")[4:]
ANSWER = write_response(BrokerHeartbeatResponse(error_code=77, is_fenced=True).write(1), 7, 1)[4:]


def test_the_commands_show_the_same_as_the_report() -> None:
    for command, result in (
        (decode_command(REQUEST, 63, 1, is_response=False), request_text(REQUEST)),
        (decode_command(ANSWER, 63, 1, is_response=True), response_text(ANSWER, 63, 1)),
    ):
        words = shlex.split(command)
        assert words[0] == "mockraft"
        found = invoke(*words[1:])
        assert found.exit_code == 0, found.output
        assert (
            json.loads(result).items()
            <= {**json.loads(found.stdout), **json.loads(found.stdout).get("body", {})}.items()
        )


def test_a_frame_that_would_not_fit_a_command_line_has_none() -> None:
    assert decode_command(bytes(9_000), 63, 1, is_response=True) == ""
    assert decode_command(None, 63, 1, is_response=True) == ""


def test_malformed_bytes_are_reported_not_raised() -> None:
    assert response_text(b"\0\0", 63, 1).startswith("(cannot be read")
    assert request_text(b"\xff" * 9).startswith("(cannot be read")
    assert response_text(None, 63, 1) == "(no answer)"


def test_texts_stand_side_by_side_with_long_equal_stretches_left_out() -> None:
    left = "\n".join(["{", *[f"line {number}" for number in range(20)], '"errorCode": 0', "}"])
    lines = side_by_side(left, left.replace('"errorCode": 0', '"errorCode": 6\n"more": 1'))
    assert [line.word for line in lines] == ["skipped", "same", "same", "same", "changed", "right", "same"]
    assert lines[0].left == "18 equal lines"
    assert (noted(lines[4].left), noted(lines[4].right)) == ("", "NOT_LEADER_OR_FOLLOWER")


def test_excused_lines_are_marked() -> None:
    left = {"throttleTimeMs": 3, "topics": [{"name": "t", "ids": [1], "epoch": {"at": 1}}], "port": 1}
    right = {"throttleTimeMs": 4, "topics": [{"name": "u", "ids": [2], "epoch": {"at": 2}}], "port": 2}
    before, after = (json.dumps(tree, indent=2) for tree in (left, right))
    lines = side_by_side(before, after, counted=["topics[].name", "topics[].epoch"])
    changed = {line.left.strip(): line.is_passed for line in lines if line.word == "changed"}
    assert changed == {
        '"throttleTimeMs": 3,': True,
        '"name": "t",': False,
        "1": True,
        '"at": 1': False,
        '"port": 1': True,
    }
    assert not any(line.is_passed for line in side_by_side(before, after))
