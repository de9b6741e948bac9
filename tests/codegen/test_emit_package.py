"""Tables of names: the packages' own, of APIs and of errors, compared with kio's and Kafka's."""

import json
from typing import Any

from kio.schema.errors import ErrorCode as KioErrorCode
from mockraft.codegen import emit_api_keys, emit_error_codes
from mockraft.codegen.emit_package import MESSAGES, RECORDS, emit_package, package_of
from mockraft.codegen.parse import parse
from mockraft.codegen.spec import MessageSpec
from mockraft.wire import api_keys, error_codes


def spec(name: str, kind: str, **keys: Any) -> MessageSpec:
    tree = {"type": kind, "name": name, "validVersions": "0-3", "flexibleVersions": "2+", "fields": []}
    return parse(json.dumps(tree | keys), f"{name}.json")


class TestRoomOf:
    def test_metadata_and_control_records_are_records(self) -> None:
        assert package_of(spec("TopicRecord", "metadata")) is RECORDS
        assert package_of(spec("VotersRecord", "data")) is RECORDS

    def test_the_rest_are_messages(self) -> None:
        assert package_of(spec("FetchRequest", "request")) is MESSAGES
        assert package_of(spec("DefaultPrincipalData", "data")) is MESSAGES


class TestEmitPackage:
    def test_lists_names_and_keys_in_order(self) -> None:
        specs = [spec("ZRequest", "request", apiKey=3), spec("ARequest", "request", apiKey=7), spec("H", "header")]
        text = emit_package(MESSAGES, specs)
        assert 'NAMES = (\n    "ARequest",\n    "H",\n    "ZRequest",\n)\n' in text
        assert 'REQUESTS = {\n    3: "ZRequest",\n    7: "ARequest",\n}\n' in text
        assert "_FLEXIBLE_REQUESTS = {\n    3: 2,\n    7: 2,\n}\n" in text
        assert "RESPONSES = {\n}\n" in text

    def test_a_message_without_flexible_versions(self) -> None:
        text = emit_package(MESSAGES, [spec("ARequest", "request", apiKey=7, flexibleVersions="none")])
        assert "_FLEXIBLE_REQUESTS = {\n    7: 32768,\n}\n" in text

    def test_records_are_found_by_type(self) -> None:
        text = emit_package(RECORDS, [spec("TopicRecord", "metadata", apiKey=2), spec("VotersRecord", "data")])
        assert 'TYPES = {\n    2: "TopicRecord",\n}\n' in text

    def test_a_long_import_is_wrapped(self) -> None:
        name = "A" + "b" * 30 + "Request"
        text = emit_package(MESSAGES, [spec(name, "request", apiKey=1)])
        assert f" import (\n        {name} as {name},\n    )\n" in text
        assert max(len(line) for line in text.splitlines()) <= 120


def run(text: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(text, "generated", "exec"), names)
    return names


def test_error_codes_agree_with_kio() -> None:
    kio = {code.value: code.name.upper() for code in KioErrorCode}
    assert len(kio) > 100
    assert {code: error_codes.NAMES[code] for code in kio} == kio


def test_an_error_has_a_constant_a_name_and_kafkas_text() -> None:
    assert error_codes.STALE_BROKER_EPOCH == 77
    assert error_codes.name(77) == "STALE_BROKER_EPOCH"
    assert error_codes.message(77) == "Broker epoch has changed."
    assert error_codes.name(9999) == "UNKNOWN_ERROR_CODE_9999"
    assert error_codes.message(9999) == ""
    assert error_codes.NOT_CONTROLLER in error_codes.RETRIABLE


def test_an_api_key_has_a_constant_and_a_name() -> None:
    assert api_keys.BROKER_HEARTBEAT == 63
    assert api_keys.name(63) == "BrokerHeartbeat"
    assert api_keys.name(9999) == "UnknownApi9999"


def test_error_texts_with_quotes_survive() -> None:
    error = {"code": 5, "name": "ODD", "retriable": True, "message": 'said "no" \\ left'}
    module = run(emit_error_codes.emit("9.9", json.dumps([error]))["wire/error_codes.py"])
    assert module["MESSAGES"] == {5: 'said "no" \\ left'}
    assert module["RETRIABLE"] == frozenset({5})


def test_names_of_apis_become_constants() -> None:
    module = run(emit_api_keys.emit("9.9", {7: "AddPartitionsToTxnRequest"})["wire/api_keys.py"])
    assert module["ADD_PARTITIONS_TO_TXN"] == 7
