"""The pages of docs/incidents: their blocks of code are the files of this folder, their index is made of their facts.

`python tests/incidents/pages.py` copies tests and facts into the pages; a test finds a page that has others.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "incidents"
INDEX = PAGES / "README.md"
FACTS = ("tracker", "component", "fixed in", "reproduced with", "real Kafka in the test")
SECTIONS = ("What mockraft does", "What Kafka does", "How an operator sees it", "The test")

_BLOCK = re.compile(r"^<!-- quoted from (?P<path>\S+) -->\n```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(?<=<!-- from here on: tests/incidents/pages.py -->\n).*?(?=<!-- up to here -->)", re.DOTALL)


def incidents() -> list[Path]:
    """Return the pages, one for each incident, in the order of the trackers' numbers."""
    pages = (page for page in PAGES.glob("*.md") if page != INDEX)
    return sorted(pages, key=lambda page: (re.sub(r"\d+", "", page.stem), int(re.sub(r"\D", "", page.stem))))


def its_test(page: Path) -> Path:
    """Return the file with the test of a page."""
    return Path(__file__).parent / f"test_{page.stem.replace('-', '_')}.py"


def title_of(page: Path) -> str:
    """Return a page's title."""
    return page.read_text().partition("\n")[0].removeprefix("# ")


def facts_of(page: Path) -> dict[str, str]:
    """Return the table at the top of a page, by its first column."""
    return dict(re.findall(r"^\| ([a-zK][^|]+?) \| ([^|]+?) \|$", page.read_text(), re.MULTILINE))


def code_of(test: Path) -> str:
    """Return a test without the docstring of its module, which repeats the title of the page."""
    source = test.read_text()
    docstring = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[docstring.end_lineno :]).lstrip()


def with_its_code(page: Path) -> str:
    """Return the text of a page with its test as it is now."""
    test = its_test(page)
    block = f"<!-- quoted from {test.relative_to(ROOT)} -->\n```python\n{code_of(test)}```"
    text, count = _BLOCK.subn(lambda _: block, page.read_text())
    return text if count else f"{text.rstrip()}\n\n{block}\n"


def with_its_table() -> str:
    """Return the text of the index with the facts of all pages."""
    rows = [f"| incident | {' | '.join(FACTS[1:])} |\n|{' --- |' * len(FACTS)}\n"]
    for page in incidents():
        facts = facts_of(page)
        rows.append(f"| [{title_of(page)}]({page.name}) | {' | '.join(facts[name] for name in FACTS[1:])} |\n")
    return _TABLE.sub(lambda _: "\n" + "".join(rows), INDEX.read_text())


if __name__ == "__main__":
    for each in incidents():
        each.write_text(with_its_code(each))
    INDEX.write_text(with_its_table())
