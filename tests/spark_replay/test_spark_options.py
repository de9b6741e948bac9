"""The sources' options and paths, which need neither PySpark nor a JVM."""

from dataclasses import fields
from pathlib import Path

import pytest
from mockraft.spark_replay.spark.capture_paths import NoCaptureError, capture_paths, loaded_paths, local_path
from mockraft.spark_replay.spark.options import OPTIONS, OptionError, SourceOptions


def test_every_option_is_a_field() -> None:
    plain = {name.replace("_", "").removesuffix("ns") for name in (field.name for field in fields(SourceOptions))}
    assert plain == {name.lower() for name in OPTIONS}


def test_options_are_read_in_any_case_with_units() -> None:
    options = SourceOptions.read(
        {
            "PORTS": "9092, 9093",
            "splitbytes": "16M",
            "timeFrom": "2026-11-20T10:00:00Z",
            "timeTo": "1795168800000000001",
            "level": "frames",
            "apiKeys": "63,Fetch,brokerregistration",
            "includeBytes": "FALSE",
            "path": "x.pcap",
        }
    )
    assert options.ports == (9092, 9093)
    assert options.split_bytes == 16 << 20
    assert options.time_from_ns == 1_795_168_800_000_000_000
    assert options.api_keys == (63, 1, 62)
    assert not options.include_bytes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": "9092"}, r"unknown option port=9092 \(did you mean ports\?\); there are: level, ports"),
        ({"ports": "9092,x"}, r"option ports: '9092,x' is not comma-separated ports"),
        ({"ports": "70000"}, r"option ports: '70000' is not"),
        ({"splitBytes": "0"}, r"option splitBytes: '0' is not a size \(64m\)"),
        ({"chunkBytes": "8x"}, r"option chunkBytes: '8x' is not a size"),
        ({"level": "bytes"}, r"option level: 'bytes' is not "),
        ({"onError": "ignore"}, r"option onError: 'ignore' is not fail, quarantine or skip"),
        ({"timeFrom": "yesterday"}, r"option timeFrom: 'yesterday' is not a time"),
        ({"timeFrom": "20", "timeTo": "10"}, r"option timeTo: must be after timeFrom"),
        (
            {"level": "frames", "apiKeys": "Fetched"},
            r"option apiKeys: 'Fetched' is not .*: Kafka 4.3.1 has no API",
        ),
        ({"quietSeconds": "-1"}, r"option quietSeconds: '-1' is not"),
    ],
)
def test_invalid_option_is_refused_with_its_value_and_choices(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        SourceOptions.read(given)


def test_paths_are_files_globs_and_folders_each_file_once(tmp_path: Path) -> None:
    for name in ("a.pcap", "b.pcapng.gz", "deep/c.pcap3", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    here = str(tmp_path)
    assert capture_paths([here]) == [f"{here}/a.pcap", f"{here}/b.pcapng.gz", f"{here}/deep/c.pcap3"]
    assert capture_paths([f"{here}/*.txt"]) == [f"{here}/notes.txt"]
    assert capture_paths([f"{here}/a.pcap", f"file://{here}/*.pcap"]) == [f"{here}/a.pcap"]


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere.pcap", "no capture file at nowhere.pcap"), ("s3a://bucket/x.pcap", "mount s3a:// as a folder")],
)
def test_reports_path_without_captures(path: str, said: str) -> None:
    with pytest.raises(NoCaptureError, match=said):
        capture_paths([path])


def test_a_load_has_one_path_or_several() -> None:
    assert loaded_paths({"path": "a"}) == ["a"]
    assert loaded_paths({"paths": '["a", "b"]'}) == ["a", "b"]
    assert local_path("file:///with%20space") == "/with space"
    with pytest.raises(NoCaptureError, match="no path"):
        loaded_paths({})
