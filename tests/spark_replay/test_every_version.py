"""Requests and responses in every version of every release are framed, paired and decoded, however a capture begins."""

from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from mockraft.codegen.every_release import every_release
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.decoding import decode_batches, decode_frames, decode_record_batches
from mockraft.vectors.bodies import random_body
from mockraft.wire.connection import write_response
from mockraft.wire.json_form import from_json
from mockraft.wire.overlay import using

from .capture_bytes import pcap
from .formats.segment_rows import written
from .frame_rows import table_of
from .packetiser import Flow, Said, Segment, conversation, packets

CAPTURES = Path(__file__).parents[1] / "captures"
COLUMNS = ("api_name", "api_version", "pair_status", "decode_status", "roundtrip")
RAW_TOKENS = ("SaslHandshake", 0)
"""What follows this version is no frame."""


def every_exchange() -> Iterator[tuple[str, int, list[Said]]]:
    """A request and its response in every version."""
    every, rng = every_release(), Random(35)
    header: Any = every.by_name("RequestHeader")
    for api_key, request_name in every.requests.items():
        name, cls, answer = every.api_name(api_key), every.by_name(request_name), every.response(api_key)
        for version in range(cls.min_version, cls.max_version + 1):
            if (name, version) == RAW_TOKENS:
                continue
            with using(every):
                asked, answered = (
                    from_json(each, random_body(each.__name__, version, rng, "plain"), version).write(version)
                    for each in (cls, answer)
                )
            before, after = (
                which(api_key, version) for which in (every.request_header_version, every.response_header_version)
            )
            head = header(request_api_key=api_key, request_api_version=version, correlation_id=7)
            if before:
                head.client_id = "me"
            response = write_response(answered, 7, after)[4:]
            yield name, version, [Said(True, head.write(before) + asked), Said(False, response)]


def test_every_version_is_framed_paired_and_decoded(tmp_path: Path) -> None:
    exchanges = list(every_exchange())
    for opens, ports in product((True, False), ([9093], ())):
        # A connection that began before, at an unknown port, is recognised by a client id, which this one lacks.
        chosen = [each for each in exchanges if opens or ports or each[:2] != ("ControlledShutdown", 0)]
        segments: list[Segment] = []
        for number, (_, _, said) in enumerate(chosen):
            segments += conversation(said, Flow(client_port=1024 + number), opens=opens, segment_bytes=60_000)
        table = table_of(written(tmp_path / "every.pcap", pcap(packets(segments))), ports)
        found: dict[int, list[Any]] = {}
        for row in (row for batch in table.to_batches() for row in decode_frames(batch, "none").to_pylist()):
            found.setdefault(row["client_port"] - 1024, []).append([row[name] for name in COLUMNS])
        by_api = {each[:2]: found.get(number) for number, each in enumerate(chosen)}
        assert {api: rows for api, rows in by_api.items() if rows != [[*api, "paired", "ok", True]] * 2} == {}
        assert len(chosen) > 360


def test_traffic_of_real_old_clients_is_read_to_the_last_record() -> None:
    frames = list(read_frames(CAPTURES / "old-clients.pcap.gz"))
    messages = pa.Table.from_batches(decode_batches(frames))
    assert Counter(zip(*(messages[name].to_pylist() for name in COLUMNS[2:]), strict=True)) == {
        ("paired", "ok", True): 282
    }
    found = pa.Table.from_batches(decode_record_batches(frames))
    assert found["error"].null_count == found.num_rows
    values = Counter(zip(found["api_key"].to_pylist(), found["value"].to_pylist(), strict=True))
    clients, compressions = 5, 3
    assert values == {(key, b"value %d" % n): clients * compressions for key in (0, 1) for n in range(20)}


LAST_ZXID, TIMEOUT_MS = bytes(8), (30_000).to_bytes(4)
OTHER_PROTOCOLS = {
    "ZooKeeper": bytes(4) + LAST_ZXID + TIMEOUT_MS + bytes(8) + (16).to_bytes(4) + bytes(17),
    "HTTP/2": bytes.fromhex("0004000000000000640004001000000006000040000000"),
}


@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_other_protocols_that_begin_as_version_0_of_produce_are_not_kafka(tmp_path: Path, name: str) -> None:
    said = [Said(True, OTHER_PROTOCOLS[name]), Said(False, bytes(37))]
    assert table_of(written(tmp_path / "other.pcap", pcap(packets(conversation(said)))), ()).num_rows == 0


def test_bytes_behind_a_request_are_ignored_as_kafka_ignores_them(tmp_path: Path) -> None:
    # As librdkafka 0.11 asks for the versions.
    said = [Said(True, bytes.fromhex("0012 0000 00000001 0007") + b"rdkafka" + bytes(4))]
    (batch,) = table_of(written(tmp_path / "behind.pcap", pcap(packets(conversation(said)))), ()).to_batches()
    (row,) = decode_frames(batch).to_pylist()
    found = [row[name] for name in ("api_name", "decode_status", "body", "roundtrip", "first_diff_offset", "error")]
    assert found == ["ApiVersions", "ok", "{}", False, 17, "4 bytes follow the request; Kafka ignores them"]
