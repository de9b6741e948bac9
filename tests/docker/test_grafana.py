"""The dashboard is one that Grafana loads, and asks Prometheus for what /metrics has."""

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from mockraft import Controller
from mockraft.server.admin.metrics import Metrics
from prometheus_client.parser import text_string_to_metric_families

from ..rows import each_row

FOLDER = Path(__file__).parents[2] / "docker" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "mockraft.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel.get("targets", ())]
PAGE = (FOLDER.parents[1] / "docs/how-to/controllers/metrics.md").read_text()
DOCUMENTED = [("metrics.md", query) for query in re.findall(r"```\n *(.*_bucket.*)\n *```", PAGE)]
SELECTOR = re.compile(r"([a-z_][a-z0-9_]*)\{([^}]*)\}")


@pytest.fixture(scope="module")
def samples() -> dict[str, set[str]]:
    """Labels of each name that /metrics has, as Prometheus stores them."""
    with Controller.sync(brokers=1) as controller:
        text = controller.call(lambda: Metrics(controller.inside).text()).decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = set()
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_dashboard_has_the_fields_required_by_grafana() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert (DASHBOARD["uid"], DASHBOARD["title"]) == ("mockraft", "mockraft")
    assert "id" not in DASHBOARD, "an id is the database's; an imported dashboard has none"
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource", "job", "instance"]
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["type"] in ("row", "stat", "timeseries"), panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel["title"]
            assert panel["description"], panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C"][: len(panel["targets"])]


def test_panels_lie_in_the_grid_and_none_on_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken.get((x, y))}"
                taken[x, y] = panel["title"]


@each_row(("title", "query"), QUERIES + DOCUMENTED)
def test_every_query_is_valid_promql_on_existing_metrics(title: str, query: str, samples: dict[str, set[str]]) -> None:
    assert DOCUMENTED
    spoken = query.replace("$__rate_interval", "1m")
    promql_parser.parse(spoken)
    for name, conditions in SELECTOR.findall(spoken):
        assert name in samples, f"{title}: /metrics has no {name}"
        if samples[name]:
            wanted = {condition.partition("=")[0].rstrip("!") for condition in conditions.split(",")}
            assert wanted <= samples[name] | {"job", "instance"}, f"{title}: {name} has no such label"


def test_variables_query_existing_metrics(samples: dict[str, set[str]]) -> None:
    queries = [each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    assert queries
    for query in queries:
        found = re.match(r"label_values\(([a-z_]+)", query)
        assert found is not None
        assert found[1] in samples


def test_prometheus_and_grafana_are_configured_with_existing_addresses() -> None:
    (job,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert job["job_name"] == "mockraft"
    assert job["static_configs"] == [{"targets": ["127.0.0.1:8080"]}]
    provisioning = yaml.safe_load((FOLDER / "dashboards.yml").read_text())
    assert provisioning["apiVersion"] == 1
    assert provisioning["providers"][0]["options"]["path"]
