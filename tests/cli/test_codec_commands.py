import io
import json
from pathlib import Path

import pytest
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.regression.captured import Captured
from mockraft.wire import record_batch

from ..rows import each_row
from .cli import invoke as run

CAPTURES = Path(__file__).parents[1] / "captures"
HEARTBEAT = "00000001 0000000000000009 0000000000000010 01 00 00"
HEARTBEAT_JSON = {
    "brokerId": 1,
    "brokerEpoch": 9,
    "currentMetadataOffset": 16,
    "wantFence": True,
    "wantShutDown": False,
}
FENCED_RESPONSE = "00000000 004d 01 00 00 00"


@pytest.fixture(scope="module")
def exchanges() -> list[Captured]:
    return [e for e in read_exchanges(CAPTURES / "controller-4.3.1.pcap") if e.request and e.response]


def whole(frame: bytes | None) -> str:
    assert frame is not None
    return (len(frame).to_bytes(4) + frame).hex()


@each_row("key", ["BrokerHeartbeat", "BrokerHeartbeatRequest", "brokerheartbeat", "broker-heartbeat", "63"])
def test_decodes_a_request_by_any_of_its_names(key: str) -> None:
    result = run("decode", "--request", key, "--version", "0", HEARTBEAT)
    assert (result.exit_code, json.loads(result.stdout)) == (0, HEARTBEAT_JSON)


@each_row(
    ("api", "version", "tree"),
    [("ListOffsets", 0, {"replicaId": -1, "topics": []}), ("ControlledShutdown", 3, {"brokerId": 1, "brokerEpoch": 2})],
)
def test_versions_of_every_release_are_decoded_explained_and_encoded(
    api: str, version: int, tree: dict[str, object]
) -> None:
    asked = ("--request", api, "--version", str(version))
    encoded = run("encode", *asked, json.dumps(tree))
    assert encoded.exit_code == 0, encoded.stderr
    assert json.loads(run("decode", *asked, encoded.stdout.strip()).stdout) == tree
    explained = run("explain", *asked, encoded.stdout.strip())
    assert explained.exit_code == 0
    assert all(name in explained.stdout for name in tree)


def test_bytes_may_be_hex_with_colons_or_standard_input() -> None:
    options = ("decode", "--request", "63", "--version", "0", "--compact")
    expected = json.dumps(HEARTBEAT_JSON, separators=(",", ":")) + "\n"
    assert run(*options, *HEARTBEAT.split()).stdout == expected
    assert run(*options, HEARTBEAT.replace(" ", ":")).stdout == expected
    assert run(*options, "0x" + HEARTBEAT.upper()).stdout == expected
    assert run(*options, "-", stdin=f"  {HEARTBEAT}\n").stdout == expected
    assert run(*options, stdin=HEARTBEAT).stdout == expected
    assert run(*options, "--raw", stdin=bytes.fromhex(HEARTBEAT)).stdout == expected


def test_encoding_inverts_decoding() -> None:
    result = run("encode", "--request", "BrokerHeartbeat", "--version", "0", json.dumps(HEARTBEAT_JSON))
    assert (result.exit_code, result.stdout) == (0, HEARTBEAT.replace(" ", "") + "\n")
    raw = run("encode", "--request", "63", "--version", "0", "--raw", "-", stdin=json.dumps(HEARTBEAT_JSON))
    assert raw.stdout_bytes == bytes.fromhex(HEARTBEAT)


def test_every_captured_frame_is_encoded_again_from_its_json(exchanges: list[Captured]) -> None:
    seen: set[tuple[int, int]] = set()
    for exchange in exchanges:
        if (exchange.api_key, exchange.api_version) in seen:
            continue
        seen.add((exchange.api_key, exchange.api_version))
        response = ("--response", str(exchange.api_key), "--version", str(exchange.api_version))
        for options, data in (((), whole(exchange.request)), (response, whole(exchange.response))):
            decoded = run("decode", "--show-secrets", *options, "--frame", "-", stdin=data)
            assert decoded.exit_code == 0, decoded.stderr
            assert run("encode", *options, "--frame", "-", stdin=decoded.stdout).stdout == data + "\n"
    assert len(seen) > 10


def test_a_body_alone_gets_a_header_when_a_frame_is_wanted() -> None:
    encoded = run("encode", "--request", "63", "--version", "0", "--frame", json.dumps(HEARTBEAT_JSON)).stdout
    header = json.loads(run("decode", "--frame", encoded).stdout)["header"]
    assert header == {"requestApiKey": 63, "requestApiVersion": 0, "correlationId": 0, "clientId": "mockraft"}
    assert run("encode", "--response", "18", "--version", "0", "--frame", '{"errorCode": 0, "apiKeys": []}').stdout == (
        "0000000a" + "00000000" + "0000" + "00000000\n"
    )


def test_records_are_bare_or_framed_or_either() -> None:
    bare, framed = "116d657461646174612e76657273696f6e001e00", "010c00116d657461646174612e76657273696f6e001e00"
    tree = {"name": "metadata.version", "featureLevel": 30}
    options = ("--record", "FeatureLevel", "--version", "0")
    assert json.loads(run("decode", *options, bare).stdout) == tree
    assert json.loads(run("decode", *options, framed).stdout) == tree
    whole_record = json.loads(run("decode", "--framed", framed).stdout)
    assert whole_record == {"type": "FeatureLevelRecord", "version": 0, "data": tree}
    assert run("encode", "--framed", json.dumps(whole_record)).stdout == framed + "\n"
    assert run("encode", *options, "--framed", json.dumps(tree)).stdout == framed + "\n"
    assert run("encode", *options, json.dumps(tree)).stdout == bare + "\n"


def test_control_records_and_other_messages_have_names_too() -> None:
    assert json.loads(run("decode", "-r", "KRaftVersion", "-v", "0", "0000 0001 00").stdout)["kRaftVersion"] == 1
    header = run("decode", "--message", "RequestHeader", "-v", "1", "003f 0000 00000007 0001 61")
    assert json.loads(header.stdout)["clientId"] == "a"


def test_explain_lays_the_bytes_out() -> None:
    result = run("explain", "--response", "BrokerHeartbeat", "--version", "1", FENCED_RESPONSE)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[2] == ["4", "00", "4d", "errorCode", "int16", "77", "STALE_BROKER_EPOCH"]
    assert rows[-1] == ["✓", "BrokerHeartbeatResponse", "v1:", "10", "bytes,", "all", "of", "them", "read"]


def test_explain_nests_fields_and_opens_records(exchanges: list[Captured]) -> None:
    fetch = next(e for e in exchanges if e.api_key == 1 and e.response and 150 < len(e.response) < 400)
    result = run("explain", "--response", "Fetch", "--version", "18", "--frame", "-", stdin=whole(fetch.response))
    assert result.exit_code == 0
    fields = [line[33:66].rstrip() for line in result.stdout.splitlines()]
    nested = ["responses", "  [0]", "    topicId", "        records", "          batch[0]", "            record[0]"]
    assert [field for field in nested if field not in fields] == []


@pytest.mark.parametrize("columns", [60, 80, 110, 200])
def test_values_are_seen_however_narrow_the_terminal(columns: int, exchanges: list[Captured]) -> None:
    from mockraft.cli.codec.explain_view import show
    from mockraft.wire.explain import explain_request
    from rich.console import Console

    registration = next(e for e in exchanges if e.api_key == 62)
    console = Console(width=columns, file=io.StringIO(), force_terminal=True, color_system=None)
    show(explain_request(bytes.fromhex(whole(registration.request))), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert '"PLAINTEXT"' in shown
    assert "BrokerRegistration" in shown
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns


def test_explain_shows_everything_up_to_the_break_and_where_it_broke() -> None:
    result = run("explain", "--request", "CreateTopics", "--version", "7", "02 05 6f7264")
    assert result.exit_code == 1
    assert "topics" in result.stdout
    assert "breaks at offset 1, in topics[0].name: says 4, but only 3 bytes are left" in result.stdout
    assert "2a 2a 2a 2a" in result.stdout
    assert "with --show-secrets" in result.stdout
    assert (
        "05 6f 72 64" in run("explain", "--show-secrets", "--request", "CreateTopics", "02 05 6f7264", "-v", "7").stdout
    )


def test_explain_for_machines() -> None:
    result = run("explain", "-p", "BrokerHeartbeat", "-v", "1", "--json", FENCED_RESPONSE)
    tree = json.loads(result.stdout)
    assert (tree["title"], tree["size"], tree["error"]) == ("BrokerHeartbeatResponse v1", 10, None)
    line = tree["lines"][1]
    about = line.pop("about")
    assert about.startswith("The error code")
    assert line == {
        "offset": 4,
        "length": 2,
        "hex": "004d",
        "path": "errorCode",
        "type": "int16",
        "value": "77 STALE_BROKER_EPOCH",
    }
    broken = run("explain", "-p", "BrokerHeartbeat", "-v", "1", "--json", FENCED_RESPONSE[:-3])
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["error"]["offset"] == 9


def test_bytes_that_kafka_does_not_read_behind_a_request_are_counted() -> None:
    frame = "00000012 0012 0000 00000001 0004 72646b61 00000000"
    tree = json.loads(run("decode", "--frame", frame).stdout)
    assert (tree["header"]["clientId"], tree["body"], tree["trailingBytes"]) == ("rdka", {}, 4)
    assert run("encode", "--frame", json.dumps(tree)).stdout.strip() == "0000000e00120000000000010004" + "72646b61"
    line = json.loads(run("explain", "--frame", "--json", frame).stdout)["lines"][-1]
    assert (line["path"], line["offset"], line["value"]) == ("trailing", 18, "4 bytes")


def test_explain_reads_record_batches() -> None:
    data = record_batch.encode([b"\x01\x14\x00\x00"], base_offset=7, leader_epoch=1, timestamp_ms=5)
    result = run("explain", "--batches", "--raw", stdin=data)
    assert result.exit_code == 0
    assert "20 NoOpRecord" in result.stdout


@each_row(
    ("arguments", "complaint"),
    [
        (("--request", "63", "--version", "1", "00"), "the bytes end too soon (field brokerId, offset 0)"),
        (("--request", "63", "--version", "2", HEARTBEAT[:-3]), "the bytes end too soon (field tags, offset 22)"),
        (("--request", "63", "--version", "0", HEARTBEAT + "01 00 00"), "bytes too many (offset 23)"),
        (("--frame", "00000004 000000"), "says 4 bytes, 3 follow"),
        (("--frame", "00000004 00000000"), "the bytes end"),
        (("--frame", "00000008 7fff0000 00000000"), "api key 32767"),
        (("--framed", "02140000"), "frame version 2"),
        (("--request", "Fetch", "--frame", "0000000a 003f0000 00000000 ffff"), "this is a BrokerHeartbeat request"),
        (("--record", "NoOp", "--framed", "010c00 0261 0001 00"), "this is a FeatureLevelRecord"),
        (("--record", "NoOp", "--version", "0", "0101"), "NoOpRecord v0"),
    ],
)
def test_bytes_that_are_something_else_are_exit_code_1(arguments: tuple[str, ...], complaint: str) -> None:
    result = run("decode", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert complaint in result.stderr


@each_row(
    ("command", "complaint"),
    [
        (("decode", "00"), "what are the bytes?"),
        (("decode", "-q", "1", "-p", "1", "-v", "4", "00"), "--request and --response cannot both be"),
        (("decode", "-q", "BrokerHartbeat", "-v", "1", "00"), "did you mean BrokerHeartbeatRequest"),
        (("decode", "-q", "9999", "-v", "1", "00"), "no API with the key 9999"),
        (("decode", "-r", "999", "-v", "1", "00"), "no metadata record of type 999"),
        (("decode", "-q", "63", "00"), "which --version of BrokerHeartbeatRequest? there are 0 to 2"),
        (("decode", "-q", "63", "-v", "9", "00"), "has no version 9: there are 0 to 2"),
        (("decode", "-r", "NoOp", "-v", "9", "00"), "has no version 9: there is only 0"),
        (("decode", "-q", "63", "-v", "1", "0g"), "not hex: 'g' after 1 digits"),
        (("decode", "-q", "63", "-v", "1", "000"), "an odd number of digits, 3"),
        (("decode", "-q", "63", "-v", "1", "--framed", "00"), "--framed does not go with --request"),
        (("decode", "-r", "NoOp", "-v", "0", "--frame", "00"), "--frame does not go with --record"),
        (("decode", "-q", "63", "-v", "1", "--raw", "00"), "--raw bytes come from standard input"),
        (("explain", "-q", "63", "-v", "1", "--batches", "00"), "--batches says it all"),
        (("encode", "-q", "63", "-v", "1", "{"), "this is not JSON"),
        (("encode", "-q", "63", "-v", "1", "[]"), "the JSON is no object"),
    ],
)
def test_misuse_has_exit_code_2_and_a_hint(command: tuple[str, ...], complaint: str) -> None:
    result = run(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert "--help has examples" in result.stderr


@each_row(
    ("arguments", "complaint"),
    [
        (("-q", "63", "-v", "0", '{"brokerId": 1}'), "a field that version 0 must have is missing (field brokerEpoch)"),
        (("--frame", '{"brokerId": 1}'), "give --request and --version"),
        (("--framed", '{"name": "x"}'), "give --record and --version"),
        (("--framed", '{"type": "NoSuchRecord", "version": 0, "data": {}}'), "no record called 'NoSuchRecord'"),
        (("--framed", '{"type": "NoOpRecord", "version": "a", "data": {}}'), "give --record and --version"),
        (("--framed", '{"type": [], "version": 0, "data": {}}'), "give --record and --version"),
        (("--frame", '{"header": [], "body": {}}'), "expected an object, got [] (field header)"),
    ],
)
def test_json_that_does_not_fit_is_exit_code_1(arguments: tuple[str, ...], complaint: str) -> None:
    result = run("encode", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert complaint in result.stderr


def test_undecodable_bytes_are_reported_with_candidates(exchanges: list[Captured]) -> None:
    heartbeat = next(e for e in exchanges if e.api_key == 63)
    framed = run("decode", "--request", "63", "--version", "2", whole(heartbeat.request))
    assert "try it with --frame: they are a whole frame" in framed.stderr
    older = run("decode", "--request", "BrokerRegistration", "--version", "2", whole_body(exchanges, 62))
    assert "try it with --version 3 or 4: in that they can be read" in older.stderr
    turned = run("decode", "--request", "63", "--version", "1", FENCED_RESPONSE)
    assert "try it with --response: they can be read as BrokerHeartbeatResponse v1" in turned.stderr
    refused = run("decode", "--response", "ApiVersions", "--version", "4", "--frame", "0000000a 00000001 0023 00000000")
    assert "try it with --version 0: in that they can be read" in refused.stderr
    explained = run("explain", "--request", "63", "--version", "1", FENCED_RESPONSE)
    assert "try it with --response" in explained.stdout


def whole_body(exchanges: list[Captured], api_key: int) -> str:
    request = next(e.request for e in exchanges if e.api_key == api_key)
    assert request is not None
    client_id_bytes = int.from_bytes(request[8:10])
    return request[10 + client_id_bytes + 1 :].hex()


@each_row("command", ["decode", "encode", "explain"])
def test_help_teaches_with_examples(command: str) -> None:
    shown = run(command, "--help").stdout
    assert shown.count(f"mockraft {command} ") >= 3
    assert "Exit codes" in shown
