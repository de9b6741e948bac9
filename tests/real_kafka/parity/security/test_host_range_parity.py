"""Ranges of addresses: Kafka's CidrUtils and ours find the same addresses in them, and refuse the same ranges alike."""

from __future__ import annotations

import random

import pytest
from mockraft.kafka_api.authorization.host_ranges import is_in_range, parse_range

from ..oracle import kafkas_answers

pytestmark = pytest.mark.real_kafka

IPV4 = ["10.0.0.1", "10.255.3.4", "192.168.1.77", "0.0.0.0", "255.255.255.255", "127.0.0.1", "010.1.2.3"]
IPV6 = ["0:0:0:0:0:0:0:1", "fd00:0:0:0:0:0:0:7", "2001:db8:0:0:1:0:0:1", "::", "fe80:0:0:0:0:0:0:1", "::ffff:10.0.0.1"]
BROKEN = [
    "10.0.0/8",
    "10.0.0.0/33",
    "10.0.0.256/8",
    "10.0.0.0/",
    "/8",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "a/8",
    "10.0.0.0/１",
]
BROKEN += [
    "fd00::/129",
    "fd00::/",
    "fd00::/x",
    "fd00::/-1",
    "fd00:::/8",
    "g::/8",
    "1:2:3/8",
    "::ffff:10.0.0.0/104",
    "::/+8",
]


def questions() -> list[tuple[str, str]]:
    rng = random.Random(12)
    ranges = [*BROKEN, *(f"{address}/{length}" for address in IPV4 for length in (0, 1, 8, 24, 31, 32))]
    ranges += [f"{address}/{length}" for address in IPV6 for length in (0, 1, 8, 64, 127, 128)]
    for _ in range(400):
        low = rng.choice((32, 128))
        number = rng.getrandbits(low)
        text = ".".join(map(str, number.to_bytes(4))) if low == 32 else f"{number:032x}"
        if low == 128:
            text = ":".join(text[at : at + 4].lstrip("0") or "0" for at in range(0, 32, 4))
        ranges.append(f"{text}/{rng.randint(0, low)}")
    near = [each.partition("/")[0] for each in ranges if each.partition("/")[0]]
    return [
        (address, each)
        for each in ranges
        for address in (*IPV4, *IPV6, *rng.sample(near, 3), each.split("/")[0] or "x")
    ]


def ours(address: str, host: str) -> str:
    try:
        parse_range(host)
        refusal = ""
    except ValueError as error:
        refusal = str(error)
    return f"{str(is_in_range(address, host)).lower()} {refusal}"


def test_ranges_are_kafkas() -> None:
    asked = questions()
    theirs = kafkas_answers("HostRangeOracle.java", [" ".join(each) for each in asked])
    found = [ours(*each) for each in asked]
    assert [
        (each, mine, kafkas) for each, mine, kafkas in zip(asked, found, theirs, strict=True) if mine != kafkas
    ] == []
    assert sum(each.startswith("true") for each in found) > 100
