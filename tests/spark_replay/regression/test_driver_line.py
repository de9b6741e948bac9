"""A session is granted once, whoever asks."""

import json
import socket

import pytest
from mockraft.spark_replay.regression.driver_line import DriverLine, SentBeforeError


def test_a_session_is_granted_once_and_refused_ever_after() -> None:
    with DriverLine("127.0.0.1") as driver:
        driver.line.claim("a", 0)
        driver.line.claim("b", 0)
        for attempt in (0, 1):
            with pytest.raises(SentBeforeError, match=f"session a was sent already .*task attempt {attempt}"):
                driver.line.claim("a", attempt)
    assert driver.granted == {"a": 0, "b": 0}


def test_progress_of_all_tasks_is_added_up() -> None:
    told: list[tuple[int, int]] = []
    with DriverLine("127.0.0.1", lambda sent, different: told.append((sent, different))) as driver:
        driver.line.tell(10, 1)
        driver.line.tell(5, 0)
    assert told == [(10, 1), (15, 1)]


def test_who_does_not_know_the_token_gets_no_answer() -> None:
    with DriverLine("127.0.0.1") as driver:
        for said in ({"claim": "a", "attempt": 0}, {"claim": "a", "attempt": 0, "token": "x"}):
            with socket.create_connection((driver.line.host, driver.line.port), 10) as line:
                line.sendall(json.dumps(said).encode() + b"\n")
                assert line.makefile().read() == ""
    assert driver.granted == {}
