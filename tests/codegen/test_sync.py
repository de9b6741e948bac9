"""The Java programs also run with older releases, whose classes have other packages."""

import json
from pathlib import Path

import mockraft.schemas_json
import pytest
from mockraft.codegen.sync import FACTS, run_java
from mockraft.kafka.jars import classpath

KEPT = Path(mockraft.schemas_json.__path__[0]) / "4.3.1"

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize("name", ["configs.json", "features.json"])
@pytest.mark.parametrize("release", ["3.9.1", "4.1.1"])
def test_older_releases_have_the_same_form(release: str, name: str) -> None:
    older, kept = json.loads(run_java(FACTS[name], classpath(release))), json.loads((KEPT / name).read_text())
    assert older.keys() == kept.keys()
