"""Check that code, commands and links of the documentation are real; its Python blocks are tests of their own."""

import re
import tomllib
from pathlib import Path

import pytest
from mockraft.server.stubs.stub_file import read_stub_file

from ..named_tests import names_in
from .blocks import PAGES, ROOT

pytestmark = pytest.mark.one_python

pages = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)


@pages
def test_quoted_code_is_in_its_file(page: Path) -> None:
    quoted = re.findall(r"^<!-- quoted from (\S+) -->\n```\w+\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for path, code in quoted:
        lines = iter((ROOT / path).read_text().splitlines())
        assert [line for line in code.splitlines() if line not in lines] == [], "not there, or in another order"


def test_stub_files_can_be_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "faults" / "stubs.md").read_text()
    files = re.findall(r"^```yaml\n(stubs:\n.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert files != []
    for number, text in enumerate(files):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert read_stub_file(path).stubs


def test_installed_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = "".join(page.read_text() for page in PAGES)
    lists = re.findall(r"pip install '(?:mockraft|\.)\[([a-z,]+)\]'", texts)
    named = {name for names in lists for name in names.split(",")}
    assert {"admin", "captures", "report", "spark"} <= named
    assert named - extras.keys() == set()


def test_links_of_the_readme_lead_to_files_wherever_it_is_shown() -> None:
    """Package indexes show the file alone: its links are absolute, and name files of this repository."""
    (source,) = re.findall(r"^  source_url: (\S+)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    links = re.findall(r"\]\(([^)]*)\)", (ROOT / "README.md").read_text())
    below = [link.replace("/raw/", "/blob/").removeprefix(f"{source}/") for link in links]
    assert len(links) > 10
    assert [path for path in below if not (ROOT / path).is_file()] == []


@pages
def test_linked_tests_exist(page: Path) -> None:
    named = re.findall(r"\[`(test_\w+)`\]\(([^)#]+)\)", page.read_text())
    paths = [(name, (page.parent / path).resolve().relative_to(ROOT).as_posix()) for name, path in named]
    assert [f"{name} in {path}" for name, path in paths if name not in names_in(path)] == []
