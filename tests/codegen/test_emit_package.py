"""Tables of the names of APIs and errors, compared with kio's and Kafka's."""

import json

from kio.schema.errors import ErrorCode as KioErrorCode
from mockraft.codegen.emit_numbers import emit_api_keys, emit_error_codes
from mockraft.wire import api_keys, error_codes


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
    module = run(emit_error_codes("9.9", json.dumps([error]))["wire/error_codes.py"])
    assert module["MESSAGES"] == {5: 'said "no" \\ left'}
    assert module["RETRIABLE"] == frozenset({5})


def test_names_of_apis_become_constants() -> None:
    module = run(emit_api_keys("9.9", {7: "AddPartitionsToTxnRequest"})["wire/api_keys.py"])
    assert module["ADD_PARTITIONS_TO_TXN"] == 7
