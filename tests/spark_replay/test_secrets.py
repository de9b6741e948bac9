"""Captures' tables, differences, recordings and stubs hide secrets, and show them on request."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from mockraft import Controller
from mockraft.spark_replay.decoding import decode_frames
from mockraft.spark_replay.decoding.hidden_frames import hide_secrets
from mockraft.spark_replay.endpoints import Endpoint
from mockraft.spark_replay.exchanges import read_exchanges
from mockraft.spark_replay.recorded_exchanges import RecordedExchanges
from mockraft.spark_replay.recorded_stubs import stubs_of
from mockraft.spark_replay.recording import Recording, TrafficRecorder
from mockraft.spark_replay.regression import targets
from mockraft.spark_replay.regression.captured import to_batch
from mockraft.spark_replay.regression.diff import CHANGED, MISSING, Difference
from mockraft.spark_replay.regression.replay import Options
from mockraft.spark_replay.regression.session_replay import Run, replay_session
from mockraft.spark_replay.report.examples import decode_command, request_text, response_text
from mockraft.wire import api_keys, error_codes, messages, metadata_log_frame, record_batch, records
from mockraft.wire.connection import parse_request, write_request, write_response
from mockraft.wire.messages import fetch_response
from mockraft.wire.messages import incremental_alter_configs_request as alter

from ..cli.cli import invoke
from ..rows import each_row
from .decoding.conftest import frame_table, request_frame, response_frame

SECRET = "hunter2"
# The error is the one that a controller answers to a replay: beside another one, the secret is no difference.
TOKEN = messages.CreateDelegationTokenResponse(
    hmac=SECRET.encode(), token_id="shown", error_code=error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
)
ALTERATION = alter.IncrementalAlterConfigsRequest(
    resources=[
        alter.AlterConfigsResource(
            resource_type=4, resource_name="1", configs=[alter.AlterableConfig(name="ssl.key.password", value=SECRET)]
        )
    ]
)
HEARTBEAT = messages.BrokerHeartbeatRequest(broker_id=7)


@each_row("copies", [1, 20])
def test_tables_hide_secrets(copies: int) -> None:
    rows = [request_frame(ALTERATION, 1), response_frame(TOKEN, 3), request_frame(HEARTBEAT, 1)] * copies
    frames = frame_table(rows)
    bodies = "".join(decode_frames(frames)["body"].to_pylist())
    assert SECRET not in bodies
    assert bodies.count('"[hidden]"') == 2 * copies
    assert bodies.count('"brokerId":7') == copies
    assert decode_frames(frames, show_secrets=True).equals(decode_frames(frames, show_secrets=True, by_shape=False))
    assert SECRET in "".join(decode_frames(frames, show_secrets=True)["body"].to_pylist())
    (hidden,) = hide_secrets([frames])
    found = b"".join(hidden["frame"].to_pylist())
    assert SECRET.encode() not in found
    assert len(found) == len(b"".join(frames["frame"].to_pylist()))
    assert decode_frames(hidden).equals(decode_frames(frames))
    (unpaired,) = hide_secrets([frame_table([(response_frame(TOKEN, 3)[0], None, None, True)])])
    assert set(unpaired["frame"][0].as_py()) == set(b"*")
    heartbeats = frame_table([request_frame(HEARTBEAT, 1)])
    assert next(hide_secrets([heartbeats])) is heartbeats
    assert isinstance(hidden, pa.RecordBatch)


def test_tables_hide_secrets_of_metadata_records_and_show_the_other_records() -> None:
    rows = []
    for number in range(40):
        config = records.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value=SECRET)
        leader = records.PartitionChangeRecord(isr=[6, 8], leader=8, partition_id=number)
        record = config if number % 4 == 0 else leader
        values = [metadata_log_frame.encode(record, 0)]
        batch = record_batch.encode(values, base_offset=number, leader_epoch=1, timestamp_ms=1)
        partition = fetch_response.PartitionData(records=batch)
        topic = fetch_response.FetchableTopicResponse(topic_id=bytes(15) + b"\1", partitions=[partition])
        rows.append(response_frame(messages.FetchResponse(responses=[topic]), 17))
    frames = frame_table(rows)
    bodies = decode_frames(frames)["body"].to_pylist()
    assert bodies == decode_frames(frames, by_shape=False)["body"].to_pylist()
    shown = decode_frames(frames, show_secrets=True)["body"].to_pylist()
    assert [number for number in range(40) if bodies[number] != shown[number]] == [*range(0, 40, 4)]


def test_differences_of_secrets_are_found_and_not_shown() -> None:
    config = {"name": "ssl.key.password", "value": SECRET}
    found = [
        Difference("resources[1].configs[ssl.key.password].value", CHANGED, SECRET, "other"),
        Difference("hmac", CHANGED, SECRET, "other"),
        Difference("responseData", CHANGED, SECRET, ""),
        Difference("topics[a]", MISSING, {"configs": [config, {"name": "retention.ms", "value": "1"}]}, None),
        Difference("errorCode", CHANGED, 1, 2),
    ]
    shown = [each.without_secrets() for each in found]
    assert SECRET not in repr(shown)
    assert "other" not in repr(shown)
    assert [each.kind for each in shown] == [each.kind for each in found]
    assert shown[4] == found[4]
    assert '{"name": "retention.ms", "value": "1"}' in json.dumps(shown[3].captured)


def test_examples_of_a_report_hide_secrets() -> None:
    request, response = write_request(ALTERATION, 1, 1, "c")[4:], write_response(TOKEN.write(3), 1, 1)[4:]
    key = api_keys.CREATE_DELEGATION_TOKEN
    texts = (
        request_text(request),
        response_text(response, key, 3),
        decode_command(request, api_keys.INCREMENTAL_ALTER_CONFIGS, 1, is_response=False),
        decode_command(response, key, 3, is_response=True),
    )
    for text in texts:
        assert SECRET not in text
        assert SECRET.encode().hex() not in text
    assert "[hidden]" in texts[0]
    assert "2a2a2a" in texts[3]


def record(recorder: TrafficRecorder) -> None:
    """Record an exchange for a token, and the change of a config inside an Envelope."""
    connection = recorder.connection(Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2), 0)
    asked = write_request(messages.CreateDelegationTokenRequest(), 3, 1, "c")[4:]
    connection.request(parse_request(asked), 0)
    connection.response(api_keys.CREATE_DELEGATION_TOKEN, write_response(TOKEN.write(3), 1, 1)[4:], 1)
    connection.request(parse_request(write_request(ALTERATION, 1, 2, "c")[4:]), 2)
    answer = messages.IncrementalAlterConfigsResponse().write(1)
    connection.response(api_keys.INCREMENTAL_ALTER_CONFIGS, write_response(answer, 2, 1)[4:], 3)
    envelope = messages.EnvelopeRequest(request_data=asked, client_host_address=b"\x7f\0\0\1")
    connection.request(parse_request(write_request(envelope, 0, 3, "1")[4:]), 4)
    inner = messages.EnvelopeResponse(response_data=write_response(TOKEN.write(3), 1, 1)[4:])
    connection.response(api_keys.ENVELOPE, write_response(inner.write(0), 3, 1)[4:], 5)
    connection.closed(6)
    recorder.close()


def test_recorded_files_hide_secrets_and_are_private(tmp_path: Path) -> None:
    sizes = []
    for show_secrets in (False, True):
        path = tmp_path / f"{show_secrets}.pcapng"
        record(Recording(path, show_secrets=show_secrets))
        data = path.read_bytes()
        assert data.count(SECRET.encode()) == 3 * show_secrets
        assert data.count(b"shown") == 2
        assert path.stat().st_mode & 0o777 == 0o600
        sizes.append(len(data))
    assert sizes[0] == sizes[1]


@each_row("words", [(), ("--show-secrets",)])
def test_replays_and_their_reports_show_secrets_only_on_request(tmp_path: Path, words: tuple[str, ...]) -> None:
    capture, folder, page, summary = (tmp_path / name for name in ("run.pcapng", "replayed", "r.html", "r.json"))
    record(Recording(capture, show_secrets=True))
    exchanges = to_batch(read_exchanges(capture, {2}))
    tables = {"replay_results": b"", "diffs": b""}
    with Controller.sync() as controller:
        target = targets.Endpoint(controller.host, controller.port)
        run = Run("r", target, Options(show_secrets=bool(words)))
        for number, batches in enumerate(replay_session([exchanges], run, "s")):
            for name, batch in zip(tables, batches, strict=True):
                (folder / name).mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.Table.from_batches([batch]), folder / name / f"{number}.parquet")
                tables[name] += repr(batch.to_pylist()).encode()
    given = ("--captures", capture, "--ports", 2, "--replay", folder, "--html", page, "--json", summary)
    assert invoke("spark", "report", *given, *words).exit_code == 0
    outputs = [*tables.values(), page.read_bytes(), summary.read_bytes()]
    texts = (SECRET.encode(), b"aHVudGVyMg==", SECRET.encode().hex().encode())
    assert [any(text in output for text in texts) for output in outputs] == [bool(words)] * len(outputs)
    assert [path.stat().st_mode & 0o777 for path in (page, summary)] == [0o600, 0o600]


@each_row("words", [(), ("--show-secrets",)])
def test_differences_of_a_replay_show_secrets_only_on_request(tmp_path: Path, words: tuple[str, ...]) -> None:
    capture, report = tmp_path / "run.pcapng", tmp_path / "report.json"
    record(Recording(capture, show_secrets=True))
    with Controller.sync(delegation_token_secret_key="key") as controller:
        given = ("--capture", capture, "--port", 2, "--bootstrap", controller.bootstrap, "--json", report)
        result = invoke("replay", *given, *words)
    assert result.exit_code == 1
    for output in (result.output, report.read_text()):
        assert "CreateDelegationToken" in output
        assert ("aHVudGVyMg==" in output, "[hidden]" in output) == (bool(words), not words)
    assert report.stat().st_mode & 0o777 == 0o600


def test_stubs_of_recorded_exchanges_hide_secrets() -> None:
    exchanges = RecordedExchanges()
    record(exchanges)
    hidden = json.dumps(stubs_of(exchanges.exchanges).stubs)
    shown = json.dumps(stubs_of(exchanges.exchanges, show_secrets=True).stubs)
    assert SECRET in shown
    assert "aHVudGVyMg==" in shown
    assert SECRET not in hidden
    assert "aHVudGVyMg==" not in hidden
    assert "KioqKioqKg==" in hidden
    assert "[hidden]" not in hidden
