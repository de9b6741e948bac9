"""Clients of groups that there are not get an error at once, and the log has the reason."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer
from mockraft import Controller
from mockraft.wire import error_codes
from mockraft.wire.messages.share_fetch_request import ShareFetchRequest
from mockraft.wire.messages.streams_group_describe_request import StreamsGroupDescribeRequest

from ...topics import ask


async def test_streams_groups_are_refused_and_journaled(caplog: pytest.LogCaptureFixture) -> None:
    async with Controller(brokers=1) as controller:
        for _ in range(2):
            described = await ask(controller.bootstrap_servers, StreamsGroupDescribeRequest(group_ids=["g"]))
            assert described.groups[0].error_code == error_codes.UNSUPPORTED_VERSION
        found = controller.requests("StreamsGroupDescribe", broker=1)
        assert {each.reason for each in found} == {"StreamsGroupDescribe: simulated brokers have no streams groups"}
    warned = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.partition("127.0.0.1: ")[2] for each in warned] == [
        "StreamsGroupDescribe: simulated brokers have no streams groups"
    ]


@pytest.mark.parametrize(
    ("release", "brokers", "features", "levels"),
    [
        ("4.4", 1, {}, {"group.version": 1, "share.version": 1}),
        ("4.4", 1, {"share.version": 2}, {"group.version": 1, "share.version": 2}),
        ("4.4", 1, {"metadata.version": 25}, {"group.version": 1}),
        ("4.4", 0, {}, {"group.version": 1, "share.version": 2, "streams.version": 1}),
        ("4.1", 1, {}, {"group.version": 1}),
        ("3.9", 1, {}, {}),
    ],
)
async def test_features_are_finalized_as_far_as_brokers_support_them(
    release: str, brokers: int, features: dict[str, int], levels: dict[str, int]
) -> None:
    async with Controller(release=release, brokers=brokers, features=features) as controller:
        found = controller.leading.controller.image.features
        groups = ("group.version", "share.version", "streams.version")
        assert {name: level for name, level in found.items() if name in groups} == levels


async def test_share_groups_are_refused_where_they_are_not_enabled() -> None:
    async with Controller(brokers=1, features={"share.version": 0}) as controller:
        answer = await ask(controller.bootstrap_servers, ShareFetchRequest(group_id="g", member_id="m"))
        assert answer.error_code == error_codes.UNSUPPORTED_VERSION
        assert controller.requests("ShareFetch")[0].reason == "share.version is 0: this cluster has no share groups"


def test_a_client_of_the_new_protocol_gets_an_error_where_it_is_not_enabled() -> None:
    with Controller.sync(brokers=1, features={"group.version": 0}) as controller:
        settings = {"bootstrap.servers": controller.bootstrap_servers, "group.id": "kitchen"}
        consumer = Consumer({**settings, "group.protocol": "consumer"})
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        consumer.close()
    assert message is not None
    assert "API version not supported" in str(message.error())
