"""The packages of generated classes: lookups, header versions, lazy imports, and the members of every message."""

import os
import pickle
import subprocess
import sys
from typing import Any

import mockraft
import mockraft.wire
import pytest
from mockraft.wire import messages, records
from mockraft.wire.errors import WireError
from mockraft.wire.message import Message, field_names
from mockraft.wire.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from mockraft.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from mockraft.wire.records.register_controller_record import RegisterControllerRecord

from ..rows import each_row


class TestLookups:
    def test_by_name_key_and_attribute(self) -> None:
        assert messages.by_name("BrokerHeartbeatRequest") is BrokerHeartbeatRequest
        assert messages.request(63) is messages.BrokerHeartbeatRequest is BrokerHeartbeatRequest
        assert messages.response(63).__name__ == "BrokerHeartbeatResponse"
        assert records.by_type(27) is records.RegisterControllerRecord is RegisterControllerRecord

    def test_control_records_are_records(self) -> None:
        control = {
            "LeaderChangeMessage",
            "KRaftVersionRecord",
            "VotersRecord",
            "SnapshotHeaderRecord",
            "SnapshotFooterRecord",
        }
        assert control < set(records.NAMES)
        assert {records.by_name(name).api_key for name in control} == {-1}

    def test_names_are_those_of_the_classes(self) -> None:
        for room in (messages, records):
            for name in room.NAMES:
                cls = room.by_name(name)
                assert cls.__name__ == name
                assert issubclass(cls, Message)
                assert 0 <= cls.min_version <= cls.max_version
                assert name in dir(room)

    @each_row(
        "look_up",
        [
            lambda: messages.by_name("Heartbeet"),
            lambda: messages.by_name("NAMES"),
            lambda: messages.request(4711),
            lambda: messages.response(4711),
            lambda: records.by_name("FetchRequest"),
            lambda: records.by_type(4711),
            lambda: messages.request_header_version(4711, 0),
            lambda: messages.response_header_version(4711, 0),
        ],
    )
    def test_unknown_names_and_keys_raise_wire_error(self, look_up: Any) -> None:
        with pytest.raises(WireError, match="there is no"):
            look_up()

    def test_an_unknown_attribute_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="Heartbeet"):
            messages.Heartbeet  # noqa: B018


class TestHeaderVersions:
    @each_row(
        ("api_key", "version", "of_request", "of_response"),
        [
            (63, 0, 2, 1),  # BrokerHeartbeat is flexible from the start
            (1, 11, 1, 0),  # Fetch before and
            (1, 12, 2, 1),  # after it became flexible
            (17, 1, 1, 0),  # SaslHandshake never is
            (18, 2, 1, 0),
            (18, 3, 2, 0),  # ApiVersions' response header never changes (KIP-511)
            (18, 4, 2, 0),
        ],
    )
    def test_follow_kafkas_rules(self, api_key: int, version: int, of_request: int, of_response: int) -> None:
        assert messages.request_header_version(api_key, version) == of_request
        assert messages.response_header_version(api_key, version) == of_response

    def test_the_client_id_of_a_header_never_has_a_compact_length(self) -> None:
        header = messages.RequestHeader(request_api_key=63, request_api_version=1, correlation_id=7, client_id="ab")
        assert header.write(2) == bytes.fromhex("003f 0001 00000007 0002 6162 00")
        assert header.write(1) == bytes.fromhex("003f 0001 00000007 0002 6162")


class TestMessage:
    def test_field_names_are_the_schemas_in_order(self) -> None:
        names = ("topics", "timeout_ms", "validate_only")
        assert field_names(CreateTopicsRequest) == names
        read = CreateTopicsRequest.read(CreateTopicsRequest(topics=[CreatableTopic(name="t")]).write(7), 7)
        assert field_names(type(read)) == names

    def test_an_error_has_message_version_field_and_offset(self) -> None:
        with pytest.raises(WireError) as caught:
            BrokerHeartbeatRequest.read(bytes(10), 1)
        assert str(caught.value) == "BrokerHeartbeatRequest v1: the bytes end too soon (offset 10)"
        with pytest.raises(WireError) as caught:
            CreateTopicsRequest.read(bytes.fromhex("02 00"), 7)
        assert (caught.value.field, caught.value.offset) == ("Name", 2)

    @each_row(
        ("message", "what"),
        [
            (BrokerHeartbeatRequest(broker_id=1 << 31), r"2147483648 does not fit an int32 .* \(field brokerId\)"),
            (
                BrokerHeartbeatRequest(broker_epoch=None),  # type: ignore[arg-type]
                r"null is not allowed in version 1 \(field brokerEpoch\)",
            ),
            (
                BrokerHeartbeatRequest(offline_log_dirs=["a" * 16]),  # type: ignore[list-item]
                r"is not of the field's type .*offlineLogDirs",
            ),
        ],
    )
    def test_a_value_that_cannot_be_written_is_named(self, message: BrokerHeartbeatRequest, what: str) -> None:
        with pytest.raises(WireError, match=what):
            message.write(1)

    def test_an_error_survives_another_process(self) -> None:
        error = WireError("what", field="Name", offset=3)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.field, again.offset) == ("what (field Name, offset 3)", "Name", 3)


class TestImports:
    """Run without site packages, because the finder of an editable install imports much of the standard library."""

    def modules_after(self, code: str) -> set[str]:
        paths = {"mockraft": list(mockraft.__path__), "mockraft.wire": list(mockraft.wire.__path__)}
        program = f"""
import os, sys, types
for name, path in {paths!r}.items():
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = path
before = set(sys.modules)
{code}
print(*sorted(sys.modules.keys() - before))
"""
        run = subprocess.run(
            [sys.executable, "-I", "-S", "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "MOCKRAFT_CODEC": "pure"},
        )
        return set(run.stdout.split())

    def test_codec_has_minimal_imports(self) -> None:
        assert self.modules_after("import mockraft.wire.messages.metadata_response") == {
            "__future__",
            "_struct",
            "mockraft.wire.errors",
            "mockraft.wire.message",
            "mockraft.wire.messages",
            "mockraft.wire.messages.metadata_response",
            "mockraft.wire.primitives",
            "mockraft.wire.shapes",
            "struct",
        }

    def test_message_is_imported_lazily(self) -> None:
        loaded = self.modules_after("import mockraft.wire.messages as messages; messages.request(63)")
        assert {name for name in loaded if name.startswith("mockraft.wire.messages.")} == {
            "mockraft.wire.messages.broker_heartbeat_request",
            "mockraft.wire.messages.lookup",
        }
