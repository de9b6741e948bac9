"""The `__init__` of a package of generated modules."""

import json
from typing import Any

from mockraft.codegen.emit_package import MESSAGES, RECORDS, emit_package, package_of
from mockraft.codegen.parse import parse
from mockraft.codegen.spec import MessageSpec


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
