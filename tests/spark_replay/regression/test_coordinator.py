"""A session is granted once, whoever claims it."""

import json
import socket

import pytest
from mockraft.spark_replay.regression.coordinator import AlreadySentError, ReplayCoordinator


def test_session_is_granted_only_once() -> None:
    with ReplayCoordinator("127.0.0.1") as driver:
        driver.client.claim("a", 0)
        driver.client.claim("b", 0)
        for attempt in (0, 1):
            with pytest.raises(AlreadySentError, match=f"session a was already sent .*task attempt {attempt}"):
                driver.client.claim("a", attempt)
    assert driver.granted == {"a": 0, "b": 0}


def test_progress_of_all_tasks_is_added_up() -> None:
    told: list[tuple[int, int]] = []
    with ReplayCoordinator("127.0.0.1", lambda sent, different: told.append((sent, different))) as driver:
        driver.client.report(10, 1)
        driver.client.report(5, 0)
    assert told == [(10, 1), (15, 1)]


def test_client_without_token_gets_no_response() -> None:
    with ReplayCoordinator("127.0.0.1") as driver:
        for said in ({"claim": "a", "attempt": 0}, {"claim": "a", "attempt": 0, "token": "x"}):
            with socket.create_connection((driver.client.host, driver.client.port), 10) as line:
                line.sendall(json.dumps(said).encode() + b"\n")
                assert line.makefile().read() == ""
    assert driver.granted == {}
