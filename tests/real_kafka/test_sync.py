"""`codegen sync` fetches exactly the vendored specs: they are Kafka's own."""

from pathlib import Path

import pytest
from mockraft.codegen.sync import main, sync

pytestmark = pytest.mark.real_kafka
RELEASE = Path(__file__).parents[2] / "schemas_json" / "4.3.1"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.suffix in {".json", ".toml"}
    }


def test_release_in_the_tree_equals_kafkas_jars(tmp_path: Path) -> None:
    assert files(sync("4.3.1", tmp_path)) == files(RELEASE)


def test_a_release_that_maven_does_not_have_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--kafka-version", "0.0.0", "--into", str(tmp_path)]) == 1
    assert "Kafka 0.0.0's jars are not available" in capfd.readouterr().err
