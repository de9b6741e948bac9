"""Generated code has each value as data: Python, Java, shells, HTML, XML, Markdown, TOML, properties."""

import ast
import asyncio
import dataclasses
import json
import re
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from mockraft.brokers.log_dirs.ensemble import LogDirsError, Refusal
from mockraft.cli import completion
from mockraft.cli.broker import command as broker_command
from mockraft.cli.mcp.written_test import test_source as source_of_test
from mockraft.conformance.reports.html_report import write_html
from mockraft.conformance.reports.junit import write_junit
from mockraft.conformance.reports.summary import Level, as_markdown
from mockraft.conformance.verdicts import Outcome, Run, Verdict
from mockraft.kafka.security import ListenerSecurity
from mockraft.kafka_configs import java_properties
from mockraft.spark_replay.regression.classes import ANY_ORDER
from mockraft.spark_replay.regression.rules import Rule, write_rules
from mockraft.spark_replay.report.examples import replay_command
from mockraft.testing.plan.steps import Step
from mockraft.testing.plan.written_test import SESSION_TIMEOUT_MS, write_test
from mockraft.twin.sources import read_history
from mockraft.wire.json_form import Json
from mockraft.wire.printable import printable, printable_line
from mockraft.wire.sasl import SaslLogin
from mockraft.wire.schema_files import Versions

from .rows import each_row

CAPTURE = Path(__file__).parent / "captures" / "controller-4.3.1.pcap"
INJECTIONS = (
    '__import__("os").system("touch x")',
    "'); import os; os.system('touch x'); ('",
    '"""\nimport os; os.system("touch x")\n"""',
    '\\"""); Runtime.getRuntime().exec("touch x"); ("""',
    "\\u0022); Runtime.getRuntime(); //",
    "*/ class X {} /* *\\/",
    "` + os.Args[0] + `",
    "$(touch x)`touch x`",
    "'; touch x; '",
    '"; touch x; "',
    "a\ntouch x",
    "--option=x y",
    '!!python/object/apply:os.system ["touch x"]',
    "key: value # comment",
    "{{ 7 * 7 }}{% raw %}%s{}",
    "<script>alert(1)</script>]]>",
    "\" onload='alert(1)' x=\"",
    "&lt;b&gt; &amp;amp;",
    "=cmd|' /C calc'!A0",
    "[x](javascript:alert(1)) ![x](http://evil) _x_ **x** ~~x~~",
    "a|b\\|c \\",
    "\x1b]0;x\x07\u202e\x9b\x7f",
)
PLAIN = ("plain",) * len(INJECTIONS)
"""Values without any meaning: what is around the others must be as around these."""


def test_a_test_of_mcp_has_values_as_literals() -> None:
    for value in INJECTIONS:
        stub: dict[str, Json] = {"name": value, "match": {"api": value, value: value}, "actions": [{value: [value]}]}
        source = source_of_test("x", [1], [stub], [{"kind": value, "params": {value: value}}], [{"api": value}])
        tree = ast.parse(source)
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        assert names == {"mockraft", "SyncController"}
        texts = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
        assert texts.count(value) == 9, source


@each_row(
    "wanted",
    [
        {"api": "Vote", "brokerId": INJECTIONS[0]},
        {"api": "Vote", "atLeast": INJECTIONS[0]},
        {"api": "Vote", "brokerId": [INJECTIONS[0]]},
        {"api": [INJECTIONS[0]]},
        {"api": "Vote", INJECTIONS[0]: 1},
    ],
)
def test_a_test_of_mcp_refuses_what_is_not_of_its_type(wanted: dict[str, Json]) -> None:
    with pytest.raises(ValueError, match=r"is a (number|name), not|there is no"):
        source_of_test("x", [], [], [], [wanted])
    brokers: Any = [INJECTIONS[0]]
    with pytest.raises(ValueError, match="a broker is a number"):
        source_of_test("x", brokers, [], [], [])


def saved_plan(path: Path, values: tuple[str, ...]) -> str:
    history = dataclasses.replace(read_history(CAPTURE), source=Path("/".join(values)))
    steps = [Step("lose_rack", value) for value in values]
    write_test(path, history, history.moment(100), steps, "live", SESSION_TIMEOUT_MS)
    return path.read_text()


def test_a_saved_plan_in_python_has_values_as_literals(tmp_path: Path) -> None:
    tree = ast.parse(saved_plan(tmp_path / "test_plan.py", INJECTIONS))
    plain = ast.parse(saved_plan(tmp_path / "test_plain.py", PLAIN))
    assert [type(each) for each in ast.walk(tree)] == [type(each) for each in ast.walk(plain)]
    steps = [each.value for each in tree.body if isinstance(each, ast.Assign)][-1]
    assert ast.literal_eval(steps) == [{"lose_rack": value} for value in INJECTIONS]


def test_a_saved_plan_in_java_has_values_as_literals(tmp_path: Path) -> None:
    tokens = re.compile(r'/\*.*?\*/|"""(?:\\.|(?!""").)*"""|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    text, plain = (saved_plan(tmp_path / f"{name}.java", values) for name, values in (("A", INJECTIONS), ("B", PLAIN)))
    assert not re.search(r"(?<!\\)(\\\\)*\\u", text)  # Java reads these before anything else
    assert tokens.sub("@", text).replace("A", "B") == tokens.sub("@", plain)
    (block,) = re.findall(r'"""(.*)"""', text, re.DOTALL)
    assert json.loads(block.replace("\\\\", "\\")) == [{"lose_rack": value} for value in INJECTIONS]


def shown_format_command(value: str) -> str:
    options: Any = SimpleNamespace(cluster_id=value, broker_id=1, log_dir=[Path(value)], metadata_log_dir=Path(value))
    text = asyncio.run(broker_command._how_to_format(LogDirsError(Refusal.NOT_FORMATTED, ""), options, {}))
    return text.partition("not: ")[2].removesuffix("\nor give this command --format.")


@each_row(
    "command", {"mockraft replay": lambda value: replay_command([value], [1]), "mockraft format": shown_format_command}
)
def test_a_command_has_values_as_arguments(command: Any, tmp_path: Path) -> None:
    for value in INJECTIONS:
        script = f"set -- {command(value)}\nprintf '%s\\0' \"$@\""
        found = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert value in found.stdout.split("\0")
    assert list(tmp_path.iterdir()) == []


def test_completion_has_no_word_that_a_shell_reads_otherwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "candidates", lambda *_: [*INJECTIONS, "stub-1"])
    completion.completion(completion.Options(shell="words", words=[""]))
    assert capsys.readouterr().out == "stub-1\n"


def run_of(values: tuple[str, ...]) -> Run:
    details = [{"expected": {value: value}, "got": {}, "story": []} for value in values]
    verdicts = [
        Verdict(value, "topics", "must", value, Outcome.FAILED, value, detail=detail)
        for value, detail in zip(values, details, strict=True)
    ]
    return Run(values[0], values[0], 30, values[0], verdicts=verdicts, codec=values[0])


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_has_values_as_text(tmp_path: Path) -> None:
    pages = []
    for values in (INJECTIONS, PLAIN):
        write_html(run_of(values), tmp_path / "run.html")
        pages.append(Page((tmp_path / "run.html").read_text()))
    assert pages[0].elements == pages[1].elements
    assert all(printable(value) in pages[0].text for value in INJECTIONS)


def test_xml_has_values_as_text(tmp_path: Path) -> None:
    write_junit(run_of(INJECTIONS), tmp_path / "run.xml")
    messages = [each.get("message") for each in ET.parse(tmp_path / "run.xml").iter("failure")]
    assert messages == [printable(value) for value in INJECTIONS]


def test_markdown_has_values_as_text() -> None:
    page = as_markdown(run_of(INJECTIONS), Level.CORE, on=date(2026, 1, 1))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page)
    inline = [each for each in tokens if each.type == "inline" and each.children]
    assert {child.type for each in inline for child in each.children or ()} <= {"text", "text_special"}
    texts = ["".join(child.content for child in each.children or ()) for each in inline]
    assert all(printable_line(" ".join(value.split())) in texts for value in INJECTIONS)


def test_rules_and_properties_come_back_as_they_were(tmp_path: Path) -> None:
    rule = Rule("Vote", "topics[].topicName", Versions(0, 1), ANY_ORDER)
    text = "\n".join(write_rules(rule._replace(why=value) for value in INJECTIONS))
    assert [each["why"] for each in tomllib.loads(text)["rule"]] == list(INJECTIONS)
    for value in INJECTIONS:
        assert java_properties.read(java_properties.write({value: value})) == {value: value}
        listener = ListenerSecurity(tmp_path, "SASL_PLAINTEXT", mechanism="PLAIN", user=value, password=value)
        assert listener.client.login == SaslLogin("PLAIN", value, value)
