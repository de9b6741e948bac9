"""Stores beside S3, by servers on the loopback: captures are read from them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from mockraft.kafka.child_process import free_port
from mockraft.kafka.jars import LOGGING, Artifact, copy_artifacts, java, made_once
from mockraft.spark_replay import read_frames
from mockraft.spark_replay.capture_paths import capture_paths
from mockraft.spark_replay.formats import CaptureError, plan_splits, read_segments
from mockraft.spark_replay.storage import Location
from mockraft.spark_replay.storage.locations import _file_system
from mockraft.spark_replay.storage.whole_files import write_file

from ..budgets import soak
from .standalone_cluster import wait_for

pytestmark = [pytest.mark.spark, soak]  # the environment with npm is that of Spark

AZURITE = "3.37.0"
FAKE_GCS = "1.56.1"
HDFS_NATIVE = "0.14.7"
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


def install_fake_gcs(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        module = f"github.com/fsouza/fake-gcs-server@v{FAKE_GCS}"
        environment = os.environ | {"GOBIN": f"{folder}/programs"}
        subprocess.run(("go", "install", module), check=True, capture_output=True, env=environment)
        Path(folder, "programs").rename(target)


def install_hdfs_native(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        packages = Path(folder, "packages")
        words = ("pip", "install", "--quiet", "--target", str(packages), f"hdfs-native=={HDFS_NATIVE}", "fsspec")
        subprocess.run([sys.executable, "-m", "uv", *words, "--python", sys.executable], check=True)
        packages.rename(target)


def fetch_hadoop(target: Path) -> None:
    with TemporaryDirectory(dir=target.parent) as folder:
        cluster = Artifact("org.apache.hadoop", "hadoop-client-minicluster", "3.4.1")
        wanted = [cluster, Artifact("junit", "junit", "4.13.2"), *LOGGING]
        assert copy_artifacts(wanted, Path(folder), Path(folder, "jars"), lambda line: None) == ""
        Path(folder, "jars").rename(target)


def service_account() -> dict[str, str]:
    """The key file of an account that nobody has: what clients sign with it is not checked."""
    words = ("openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
    key = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    email = "captures@example.iam.gserviceaccount.com"
    return {"type": "service_account", "private_key": key, "private_key_id": "1", "client_email": email}


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def server(words: Sequence[object], folder: Path, is_ready: Callable[[], object]) -> Iterator[None]:
    """A process that serves until the block ends."""
    process = subprocess.Popen([*map(str, words)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"{words[0]} serves", is_ready, process)
        yield
    finally:
        process.kill()
        process.wait()


def read_back(root: str, capture: str) -> int:
    """Write a capture to a store, list it, and read it whole and in ranges. Returns its frames."""
    stored = f"{root}/ring/a.pcap"
    write_file(Location.parse(stored), Path(capture).read_bytes())
    assert capture_paths([f"{root}/r*/*.pcap"]) == capture_paths([f"{root}/ring"]) == [stored]
    splits = plan_splits(stored, 300 << 10)
    expected = sum(map(len, read_segments(capture)))
    assert (len(splits), sum(len(found) for split in splits for found in read_segments(split))) == (3, expected)
    with pytest.raises(CaptureError, match="cannot be opened"):
        list(read_segments(f"{root}/ring/b.pcap"))

    frames = pa.Table.from_batches(read_frames(f"{root}/ring", [19093]))
    return int(frames.num_rows)


@pytest.fixture
def new_file_systems() -> Iterator[None]:
    """Forget the file systems of the environment before, and leave none to the next test."""
    _file_system.cache_clear()
    yield
    _file_system.cache_clear()


@pytest.mark.usefixtures("new_file_systems")
def test_azure(tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    script = made_once(f"azurite-{AZURITE}", install_azurite) / "node_modules/azurite/dist/src/blob/main.js"
    words = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", tmp_path, "--skipApiVersionCheck")
    with server(["node", script, *words, "--silent"], tmp_path, lambda: accepts(port)):
        connection = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": AZURITES_ACCOUNT,
            "AccountKey": AZURITES_KEY,
            "BlobEndpoint": f"http://127.0.0.1:{port}/{AZURITES_ACCOUNT}",
        }
        text = ";".join(f"{name}={value}" for name, value in connection.items())
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", text)
        root = f"abfss://caps@{AZURITES_ACCOUNT}.dfs.core.windows.net"
        Location.parse(root).file_system().create_dir("caps")
        assert read_back(root, controller_capture) == 1726


@pytest.mark.usefixtures("new_file_systems")
def test_google_cloud(tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    program = made_once(f"fake-gcs-server-{FAKE_GCS}", install_fake_gcs) / "fake-gcs-server"
    (tmp_path / "buckets" / "caps").mkdir(parents=True)
    words = ("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-filesystem-root", str(tmp_path / "buckets"))
    url = ("-external-url", f"http://127.0.0.1:{port}")
    with server([program, *words, *url], tmp_path, lambda: accepts(port)):
        (tmp_path / "account.json").write_text(json.dumps(service_account()))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", f"http://127.0.0.1:{port}")
        assert read_back("gs://caps", controller_capture) == 1726


@pytest.mark.usefixtures("new_file_systems")
def test_hdfs(tmp_path: Path, controller_capture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Maven (hadoop-hdfs-native-client is without it) nor PyPI has libhdfs, so this is by hdfs-native."""
    port, ready = free_port(), tmp_path / "ready.xml"
    monkeypatch.syspath_prepend(str(made_once(f"hdfs-native-{HDFS_NATIVE}", install_hdfs_native)))
    jars = made_once("hadoop-3.4.1", fetch_hadoop)
    quick = (
        "-Xmx400m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "--add-opens",
        "java.base/java.lang=ALL-UNNAMED",
    )
    manager = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
    words = ("-nomr", "-format", "-datanodes", 1, "-nnport", port, "-writeConfig", ready)
    with server([java(), *quick, "-cp", jars / "*", manager, *words], tmp_path, ready.is_file):
        assert read_back(f"hdfs://127.0.0.1:{port}/lake", controller_capture) == 1726
