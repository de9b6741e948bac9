"""Locations of captures as text, and captures in a bucket of a real S3 server, read once, in few ranges."""

import gzip
import struct
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.capture_paths import NoCaptureError, capture_files, capture_paths
from mockraft.spark_replay.formats import CaptureError, plan_splits, read_segments
from mockraft.spark_replay.report.page import write_report
from mockraft.spark_replay.report.sources import Captures
from mockraft.spark_replay.spark.options import OptionError, SourceOptions
from mockraft.spark_replay.storage import Location, LocationError, locations
from mockraft.spark_replay.storage.listing import exists, is_folder
from mockraft.spark_replay.storage.locations import _connection
from mockraft.spark_replay.storage.whole_files import read_file, write_file

from ...budgets import budget
from ...rows import each_row
from ...s3_server import S3Server

CAPTURE = Path(__file__).parents[2] / "captures" / "controller-4.3.1.pcap"
PORT = 19093
READ_MAX = 1.1
"""How many times its bytes a capture may be read, with everything that planning its splits needs."""
HEADER_BYTES = {"pcap": 24, "pcapng": 48}


def as_pcapng(capture: bytes) -> bytes:
    """The packets of a little-endian microseconds pcap as enhanced packet blocks of one interface."""
    blocks = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)]
    link_type = struct.unpack_from("<I", capture, 20)[0]
    blocks.append(struct.pack("<IIHHII", 1, 20, link_type, 0, 0, 20))
    at = 24
    while at < len(capture):
        seconds, micros, size, original = struct.unpack_from("<IIII", capture, at)
        data = capture[at + 16 : at + 16 + size] + bytes(-size % 4)
        total = 32 + len(data)
        time_us = seconds * 1_000_000 + micros
        head = struct.pack("<IIIIIII", 6, total, 0, time_us >> 32, time_us & 0xFFFFFFFF, size, original)
        blocks.append(head + data + struct.pack("<I", total))
        at += 16 + size
    return b"".join(blocks)


def test_captures_are_found_by_file_glob_and_folder(s3: S3Server) -> None:
    for name in ("a.pcap", "b.pcapng.gz", "day=1/c.pcap3", "day=1/deep/d.cap", "day=2/e.pcap", "notes.txt"):
        s3.put(f"s3://caps/ring/{name}", b"x" * len(name))

    def found(path: str) -> list[str]:
        return [each.removeprefix("s3://caps/ring/") for each in capture_paths([path])]

    everything = ["a.pcap", "b.pcapng.gz", "day=1/c.pcap3", "day=1/deep/d.cap", "day=2/e.pcap"]
    assert found("s3://caps/ring") == found("s3a://caps/ring/") == found("s3://caps") == everything
    assert found("s3://caps/ring/notes.txt") == ["notes.txt"]
    assert found("s3://caps/ring/*.pcap*") == ["a.pcap", "b.pcapng.gz"]
    assert found("s3://caps/ring/day=?/*") == ["day=1/c.pcap3", "day=1/deep/d.cap", "day=2/e.pcap"]
    assert found("s3://caps/r*/day=1") == ["day=1/c.pcap3", "day=1/deep/d.cap"]
    assert found("s3://caps/ring/**/[c-d].*") == ["day=1/c.pcap3", "day=1/deep/d.cap"]
    assert found("s3://caps/ring/**") == [*everything, "notes.txt"]
    (first,) = capture_files("s3://caps/ring/a.pcap")
    assert first.size == 6
    assert abs(first.modified_ns - time.time_ns()) < 600_000_000_000
    for path in ("s3://caps/ring/x*", "s3://caps/nowhere.pcap", "s3://caps/nowhere/"):
        with pytest.raises(NoCaptureError, match=f"no capture file at {path}".replace("*", r"\*")):
            capture_paths([path])
    s3.refuses = lambda method, path: True
    for path in ("s3://caps/ring/a.pcap", "s3://caps/ring/*"):
        with pytest.raises(NoCaptureError, match=r"cannot be (listed|read): .*ACCESS_DENIED"):
            capture_paths([path])


@pytest.mark.parametrize("packed", [False, True])
def test_frames_of_a_bucket_are_those_of_the_local_file(s3: S3Server, packed: bool) -> None:
    content = gzip.compress(CAPTURE.read_bytes()) if packed else CAPTURE.read_bytes()
    url = s3.put("s3://caps/run.pcap", content)
    expected = pa.Table.from_batches(read_frames(CAPTURE, [PORT]))
    assert pa.Table.from_batches(read_frames(url.replace("s3", "s3a"), [PORT])) == expected
    gets = s3.gets("run.pcap")
    assert sum(each.size for each in gets) <= len(content) + 28
    assert len(gets) <= 4
    for path in ("s3://caps", "s3://caps/r*"):
        assert pa.Table.from_batches(read_frames(path, [PORT])) == expected


def test_absent_object_and_bucket_are_named(s3: S3Server) -> None:
    for url in ("s3://caps/nowhere.pcap", "s3://nobody/x.pcap"):
        with pytest.raises(CaptureError, match=r"cannot be opened: .*") as raised:
            list(read_frames(url))
        assert url in str(raised.value)


def test_patterns_match_hidden_names_only_with_a_dot_as_on_disks(s3: S3Server, tmp_path: Path) -> None:
    for name in ("a.pcap", ".b.pcap", ".t.being-written/c.pcap", "day/d.pcap", "day/.e.pcap"):
        s3.put(f"s3://caps/{name}", b"x")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    for pattern in ("*", "*.pcap", "**/*.pcap", "**/[ab]*", ".t*/*", "day/.*"):
        remote = {each.removeprefix("s3://caps/") for each in capture_paths([f"s3://caps/{pattern}"])}
        local = {str(Path(each).relative_to(tmp_path)) for each in capture_paths([str(tmp_path / pattern)])}
        assert remote == local, pattern


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("splits", [1, budget(4, 16)])
def test_large_capture_is_read_hardly_more_than_once(s3: S3Server, form: str, splits: int) -> None:
    once = as_pcapng(CAPTURE.read_bytes()) if form == "pcapng" else CAPTURE.read_bytes()
    header, records = once[: HEADER_BYTES[form]], once[HEADER_BYTES[form] :]
    times = budget(32 << 20, 1 << 30) // len(records) + 1
    content = header + times * records
    url = s3.put(f"s3://caps/large.{form}", content)
    planned = plan_splits(url, -(-len(content) // splits))
    assert len(planned) == splits
    packets = sum(len(found) for split in planned for found in read_segments(split))
    assert packets == times * sum(len(found) for found in read_segments(CAPTURE))
    assert sum(each.size for each in s3.gets(f"large.{form}")) <= READ_MAX * len(content)


def test_planning_reads_no_packed_capture(s3: S3Server) -> None:
    url = s3.put("s3://caps/run.pcap.gz", gzip.compress(CAPTURE.read_bytes()))
    assert len(plan_splits(url, 1 << 16)) == 1
    assert sum(each.size for each in s3.gets(".gz")) == 4


def test_report_of_a_bucket_is_written_to_it(s3: S3Server) -> None:
    url = s3.put("s3://caps/run.pcap", CAPTURE.read_bytes())
    found = write_report("s3://caps/reports/run.html", Captures([url], [PORT]))
    assert found["sources"] == ["run.pcap"]
    assert b"<html" in s3.content("caps", "reports/run.html")


def test_files_are_written_and_read(s3: S3Server) -> None:
    folder = Location.parse("s3://caps/tables")
    write_file(folder / "rules.json", b"[]")
    assert read_file(folder / "rules.json") == b"[]"
    assert (is_folder(folder), exists(folder / "rules.json"), exists(folder / "other")) == (True, True, False)
    with pytest.raises(FileNotFoundError):
        read_file(folder / "other")


SECRET = "wJalrXUtnFEMI"


@each_row(
    ("text", "same", "arrow_path"),
    [
        ("ring/a.pcap", "ring/a.pcap", "ring/a.pcap"),
        ("file:///ring%20one/a.pcap", "/ring one/a.pcap", "/ring one/a.pcap"),
        ("s3a://caps/ring/a.pcap", "s3://caps/ring/a.pcap", "caps/ring/a.pcap"),
        ("S3://caps", "s3://caps/", "caps"),
        ("gcs://caps/ring/", "gs://caps/ring", "caps/ring"),
        ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/x", "box/x"),
        ("hdfs://name:8020/ring/*.pcap", "hdfs://name:8020/ring/*.pcap", "/ring/*.pcap"),
    ],
)
def test_location_has_a_form_for_users_and_one_for_its_file_system(text: str, same: str, arrow_path: str) -> None:
    found = Location.parse(text)
    assert (str(found), found.arrow_path) == (same, arrow_path)
    assert Location.parse(str(found)) == found


@each_row("text", ["s3://caps/tables/frames", "/caps/tables/frames", "hdfs://name/tables/frames"])
def test_location_has_parts(text: str) -> None:
    found = Location.parse(text)
    assert (found.name, found.parent.name, found.parent / "frames") == ("frames", "tables", found)


@each_row(
    ("text", "reason"),
    [
        ("s4://caps/x", r"s4://caps/x: unknown scheme s4://; a location is a path, or file://, s3://, s3a://"),
        ("s3:///x", r"no bucket behind s3://"),
        ("abfss:///x", r"no container behind abfss://"),
        (f"s3://AKIA:{SECRET}@caps/x", r"s3:// location with credentials, which logs would show: use a role"),
        (f"s3://caps/x?access_key=AKIA&secret_key={SECRET}", "with credentials"),
        (f"abfss://box:{SECRET}@account.dfs.core.windows.net/x", "with credentials"),
        (f"gs://caps/x?X-Amz-Signature={SECRET}", "with credentials"),
    ],
)
def test_refuses_location_and_names_no_credential(text: str, reason: str) -> None:
    with pytest.raises(LocationError, match=reason) as raised:
        Location.parse(text)
    assert SECRET not in str(raised.value)


@each_row("name", ["fs.s3a.access.key", "AWS_SECRET_ACCESS_KEY", "secretKey", "accountKey", "sasToken", "password"])
def test_refuses_credentials_as_options_of_the_source_without_showing_them(name: str) -> None:
    with pytest.raises(OptionError, match=r"credentials in options end in plans and event logs; use a role") as raised:
        SourceOptions.read({"ports": "9093", name: SECRET})
    assert SECRET not in str(raised.value)


def test_file_systems_that_are_not_there_say_what_they_need() -> None:
    with pytest.raises(LocationError, match=r"hdfs://nowhere: .*libhdfs"):
        Location.parse("hdfs://nowhere/x").file_system()


def test_host_that_hdfs_native_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: str, port: int | None) -> None:
        raise RuntimeError('InvalidArgument("No NameNode hosts found")')

    monkeypatch.setattr(locations, "find_spec", lambda name: True)
    monkeypatch.setattr(locations, "import_module", lambda name: SimpleNamespace(HdfsFileSystem=refuse))
    with pytest.raises(LocationError, match=r"hdfs://refused: .*No NameNode hosts"):
        Location.parse("hdfs://refused/x").file_system()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("AccountName=other;AccountKey=a2V5", {}),
        (
            "AccountName=acct;AccountKey=a2V5==;EndpointSuffix=core.chinacloudapi.cn",
            {
                "account_key": "a2V5==",
                "blob_storage_authority": ".blob.core.chinacloudapi.cn",
                "blob_storage_scheme": "https",
                "dfs_storage_authority": ".dfs.core.chinacloudapi.cn",
                "dfs_storage_scheme": "https",
            },
        ),
        (
            "BlobEndpoint=http://127.0.0.1:10000/acct;AccountName=acct",
            {
                "blob_storage_authority": "127.0.0.1:10000",
                "blob_storage_scheme": "http",
                "dfs_storage_authority": "127.0.0.1:10000",
                "dfs_storage_scheme": "http",
            },
        ),
        (
            "SharedAccessSignature=sv=1&sig=x;BlobEndpoint=https://acct.blob.core.windows.net/",
            {
                "sas_token": "sv=1&sig=x",
                "blob_storage_authority": ".blob.core.windows.net",
                "blob_storage_scheme": "https",
                "dfs_storage_authority": ".dfs.core.windows.net",
                "dfs_storage_scheme": "https",
            },
        ),
    ],
)
def test_connection_string_of_azure_is_for_its_account_only(
    text: str, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
    assert _connection("acct") == (expected and {"account_name": "acct"} | expected)
