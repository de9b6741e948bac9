"""Azure's store, by its emulator on the loopback: captures are read from it, and tables written to it."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mockraft.kafka.jars import made_once
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.capture_paths import capture_paths
from mockraft.spark_replay.formats import plan_splits, read_segments
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.listing import find_files
from mockraft.spark_replay.storage.locations import _file_system
from mockraft.spark_replay.storage.staging import Staging, table_files
from mockraft.spark_replay.storage.whole_files import open_for_writing, write_file

from ..budgets import soak
from .standalone_cluster import wait_for

pytestmark = [pytest.mark.spark, soak]  # the environment with npm is that of Spark

AZURITE = "3.37.0"
AZURITES_ACCOUNT = "devstoreaccount1"
AZURITES_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Public: every Azurite has them."""


def install_azurite(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        packages = Path(folder, "packages")
        packages.mkdir()
        words = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", packages, f"azurite@{AZURITE}")
        subprocess.run(words, check=True, capture_output=True)
        packages.rename(target)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def azurite(folder: Path) -> Iterator[int]:
    """An Azurite that runs on a free port until the block ends."""
    packages = made_once(f"azurite-{AZURITE}", install_azurite)
    script = packages / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--skipApiVersionCheck")
    process = subprocess.Popen(["node", str(script), *words, "--silent"], stdout=subprocess.DEVNULL)
    try:
        wait_for("Azurite listens", lambda: accepts(port), process)
        yield port
    finally:
        process.kill()
        process.wait()


def test_captures_in_azure_are_read_and_tables_in_it_are_replaced_whole(
    tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with azurite(tmp_path / "blobs") as port:
        connection = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": AZURITES_ACCOUNT,
            "AccountKey": AZURITES_KEY,
            "BlobEndpoint": f"http://127.0.0.1:{port}/{AZURITES_ACCOUNT}",
        }
        text = ";".join(f"{name}={value}" for name, value in connection.items())
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
        _file_system.cache_clear()
        root = f"abfss://caps@{AZURITES_ACCOUNT}.dfs.core.windows.net"
        Location.parse(root).file_system().create_dir("caps")
        capture = f"{root}/ring/a.pcap"
        write_file(Location.parse(capture), Path(controller_capture).read_bytes())
        assert capture_paths([f"{root}/r*/*.pcap"]) == capture_paths([f"{root}/ring"]) == [capture]
        splits = plan_splits(capture, 300 << 10)
        expected = sum(map(len, read_segments(controller_capture)))
        assert (len(splits), sum(len(found) for split in splits for found in read_segments(split))) == (3, expected)

        frames = pa.Table.from_batches(read_frames(capture, [19093]))
        out = Location.parse(f"{root}/tables/frames")
        for table in (frames, frames.slice(0, 5)):
            staging = Staging.begin(out)
            with open_for_writing(staging.parts / "0.parquet") as file:
                pq.write_table(table, file)
            staging.publish(["0.parquet"])
            staging.end()
            found = [pq.read_table(file.arrow_path, filesystem=file.file_system()) for file in table_files(out)]
            assert pa.concat_tables(found).num_rows == table.num_rows
        assert frames.num_rows == 1726
        stored = find_files(Location.parse(f"{root}/tables"), lambda name: True)
        assert sorted(file.path.rpartition("/")[2].partition("-")[0] for file in stored) == ["_SUCCESS", "part"]
    _file_system.cache_clear()
