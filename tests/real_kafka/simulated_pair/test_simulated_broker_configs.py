"""A real broker and a simulated one describe and validate configs: equal responses."""

from __future__ import annotations

from typing import Any

import pytest
from mockraft.wire import json_form, messages

from .conftest import Change, setting

pytestmark = pytest.mark.real_kafka

REAL, SIMULATED = 1, 2
ITS_OWN = {"node.id", "log.dirs", "metadata.log.dir", "listeners", "advertised.listeners"}


def asked(name: str, version: int, **fields: Any) -> Any:
    """A request out of Kafka's JSON form in this version."""
    return json_form.from_json(messages.by_name(f"{name}Request"), fields, version)


def versions(name: str, least: int = 0) -> range:
    message = messages.by_name(f"{name}Request")
    return range(max(least, message.min_version), message.max_version + 1)


def without_its_own(tree: Any) -> Any:
    """Two brokers have names, places and ports of their own."""
    for result in tree["results"]:
        result["resourceName"] = result["resourceName"].replace(str(SIMULATED), str(REAL))
        result["configs"] = [
            config for config in result["configs"] if config["name"] not in ITS_OWN | {"broker.id", "log.dir"}
        ]
    return tree


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((2, name) for name in ("both", "single", "none", "no/name")),
        *((4, ""), (4, "x"), (8, "")),
        *((16, name) for name in ("metrics", "none", "")),
        *((32, name) for name in ("group", "none", "")),
    ],
)
async def test_describe_configs(pair: Any, version: int, kind: int, name: str) -> None:
    resource = {"resourceType": kind, "resourceName": name, "configurationKeys": None}
    fields: dict[str, Any] = {"resources": [resource], "includeSynonyms": True}
    if version >= 3:
        fields["includeDocumentation"] = False
    told = await pair.same(asked("DescribeConfigs", version, **fields), version, without_ids)
    assert len(told["results"]) == 1


def without_ids(tree: Any) -> Any:
    """A message may name the broker."""
    for result in tree["results"]:
        if result["errorMessage"]:
            result["errorMessage"] = result["errorMessage"].replace(f"expected {SIMULATED}", f"expected {REAL}")
    return tree


@pytest.mark.parametrize("version", versions("DescribeConfigs"))
async def test_describe_configs_of_the_broker_itself(pair: Any, version: int) -> None:
    told = []
    for which in (REAL, SIMULATED):
        resource = {"resourceType": 4, "resourceName": str(which), "configurationKeys": None}
        fields: dict[str, Any] = {"resources": [resource], "includeSynonyms": True}
        if version >= 3:
            fields["includeDocumentation"] = False
        response = await pair.tree(which, asked("DescribeConfigs", version, **fields), version)
        told.append(without_its_own(response))
    assert pair.difference(told[1], told[0]) == []


CHANGES = [
    (2, "both", "retention.ms", "x"),
    (2, "none", "retention.ms", "1"),
    (2, "both", "no.such.key", "1"),
    (4, "7", "log.cleaner.backoff.ms", "1"),
    (4, "x", "log.cleaner.backoff.ms", "1"),
    (4, "", "node.id", "7"),
    (4, "", "cordoned.log.dirs", "*"),
    (4, "", "log.cleaner.backoff.ms", "many"),
    (4, "", "log.cleaner.backoff.ms", "-3"),
    (4, "", "ssl.keystore.location", "f"),
    (4, "", "no.such.key", "1"),
    (4, "", "log.cleaner.backoff.ms", "3"),
    (4, "", "log.cleaner.backoff.ms", None),
    (8, "7", "root", "INFO"),
    (8, "x", "root", "INFO"),
    (16, "metrics", "interval.ms", "1"),
    (32, "group", "consumer.session.timeout.ms", "1"),
    (99, "x", "k", "1"),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, change)))
async def test_changes_of_configs(pair: Any, change: Change) -> None:
    def without_broker(tree: Any) -> Any:
        for each in tree["responses"]:
            for before in ("expected ", "Expected "):
                if each["errorMessage"]:
                    each["errorMessage"] = each["errorMessage"].replace(f"{before}{SIMULATED},", f"{before}{REAL},")
        return tree

    for version in versions("IncrementalAlterConfigs"):
        assert await pair.same(setting(change, validate_only=True), version, without_broker)


async def test_cordoning_an_unknown_directory_is_refused(pair: Any) -> None:
    told = []
    for which in (REAL, SIMULATED):
        request = setting((4, str(which), "cordoned.log.dirs", "/nope,/nor"), validate_only=True)
        (each,) = (await pair.ask(which, request)).responses
        told.append((each.error_code, each.error_message))
    assert told[1] == told[0]
