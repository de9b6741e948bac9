"""What Kafka's classes say of configs and features is what is kept in schemas_json."""

import json
from pathlib import Path

import mockraft.schemas_json
import pytest
from mockraft.codegen.config_keys import extract_config_keys
from mockraft.codegen.feature_levels import extract_feature_levels
from mockraft.kafka_jars import classpath

KEPT = Path(mockraft.schemas_json.__path__[0]) / "4.3.1"

pytestmark = pytest.mark.real_kafka


def test_configs_are_those_of_kafkas_own_classes(tmp_path):
    extract_config_keys(classpath("4.3.1"), tmp_path / "configs.json")
    assert (tmp_path / "configs.json").read_text() == (KEPT / "configs.json").read_text()


def test_features_are_those_of_kafkas_own_classes(tmp_path):
    extract_feature_levels(classpath("4.3.1"), tmp_path / "features.json")
    assert (tmp_path / "features.json").read_text() == (KEPT / "features.json").read_text()


@pytest.mark.parametrize("release", ["3.9.1", "4.1.1"])
def test_older_releases_have_the_same_form(release, tmp_path):
    extract_config_keys(classpath(release), tmp_path / "configs.json")
    extract_feature_levels(classpath(release), tmp_path / "features.json")
    for name in ("configs.json", "features.json"):
        older, kept = (json.loads((folder / name).read_text()) for folder in (tmp_path, KEPT))
        assert older.keys() == kept.keys()
