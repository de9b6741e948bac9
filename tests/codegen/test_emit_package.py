"""The classes generated from schemas, and tables of the names of APIs and errors, compared with kio's and Kafka's."""

import json

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from mockraft.codegen.emit_numbers import emit_api_keys, emit_error_codes
from mockraft.wire import api_keys, error_codes

from .conftest import ID, NAME, MessageOf


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


TOPIC = {"name": "Topics", "type": "[]Topic", "fields": [NAME]}
LEADER = {
    "name": "Leader",
    "type": "Leader",
    "fields": [{"name": "Id", "type": "int32", "versions": "0+", "default": -1}],
}


class TestEmittedClass:
    def test_never_shares_a_list_or_a_struct(self, message_of: MessageOf) -> None:
        cls = message_of(TOPIC, LEADER)
        assert cls().topics is not cls().topics
        assert cls().leader is not cls().leader

    def test_takes_none_as_a_value_not_as_the_default(self, message_of: MessageOf) -> None:
        cls = message_of(TOPIC | {"nullableVersions": "0+"})
        assert (cls(topics=None).topics, cls().topics) == (None, [])

    def test_takes_its_fields_by_name_only(self, message_of: MessageOf) -> None:
        cls = message_of(ID)
        assert cls(id=3).id == 3
        for wrong in (lambda: cls(3), lambda: cls(idd=3), lambda: hash(cls())):
            with pytest.raises(TypeError):
                wrong()
        with pytest.raises(AttributeError):
            cls().other = 1

    def test_compares_by_value_whether_made_or_read(self, message_of: MessageOf) -> None:
        cls = message_of(ID, TOPIC, flexibleVersions="0+")
        made = cls(id=3)
        read = cls.read(made.write(0), 0)
        assert made == read
        assert isinstance(read, cls)
        assert made != cls(id=4)
        assert made != cls(id=3, unknown_tagged_fields=[(9, b"x")])
        assert made != (3, [])
        assert message_of(ID)() != message_of(ID)()

    def test_shows_its_fields(self, message_of: MessageOf) -> None:
        cls = message_of(ID, LEADER)
        shown = "TestRequest(id=3, leader=Leader(id=-1))"
        assert repr(cls(id=3)) == repr(cls.read(cls(id=3).write(0), 0)) == shown
        assert repr(cls(unknown_tagged_fields=[(1, b"")])).endswith("unknown_tagged_fields=[(1, b'')])")

    def test_escapes_quotes_in_schema_texts(self, message_of: MessageOf) -> None:
        about = 'the "name",\n"""\\ or so: ' + "long " * 40
        cls = message_of(TOPIC | {"about": about}, ID | {"about": about})
        assert cls().topics == []
