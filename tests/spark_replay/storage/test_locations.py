"""Locations as text: schemes, names, and credentials, which are refused without being shown."""

from types import SimpleNamespace

import pytest
from mockraft.spark_replay.spark.options import OptionError, SourceOptions
from mockraft.spark_replay.storage import Location, LocationError, locations
from mockraft.spark_replay.storage.locations import _connection

from ...rows import each_row

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
