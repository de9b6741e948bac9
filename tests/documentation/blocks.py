"""Python blocks of the documentation, written out as tests: readers paste what these run.

A block is a module of its own with its imports. A block without a test function becomes one test. Lines keep their
numbers, so that a failure points at the page. A comment before the block adds pytest marks:

    <!-- marks: real_kafka, timeout(600) -->

A comment `<!-- quoted from tests/x.py -->` leaves a block to that file, which has fixtures that readers do not need.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WRITTEN = Path(__file__).parent / "pages"

_BLOCK = re.compile(
    r"(?:^<!-- (?:marks: (?P<marks>[^\n]*?)|(?P<quoted>quoted from [^\n]*?)) -->\n)?^```python\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)
_TEST = re.compile(r"^(?:async )?def test_", re.MULTILINE)


def write_blocks() -> None:
    """Make the folder `pages` hold the blocks of all pages, one file for each; an unchanged file is left as it is."""
    files = {}
    for page in PAGES:
        text = page.read_text()
        folder = WRITTEN / page.relative_to(ROOT).with_suffix("").as_posix().replace("-", "_").lower()
        for block in _BLOCK.finditer(text):
            if block["quoted"]:
                continue
            line = text.count("\n", 0, block.start("code"))
            files[folder / f"test_line_{line}.py"] = _module(block["code"], block["marks"], line, page.name)
    for stale in {*WRITTEN.rglob("test_*.py")} - files.keys():
        stale.unlink()
    for path, source in files.items():
        if not path.is_file() or path.read_text() != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(source)
            unfinished.replace(path)


def _module(code: str, marks: str | None, line: int, page: str) -> str:
    names = [f"pytest.mark.{mark.strip()}" for mark in ("one_python", *(marks or "").split(",")) if mark.strip()]
    head = f'"""Block of {page}."""; import pytest; pytestmark = [{", ".join(names)}]'
    before = [head, *[""] * (line - 1)]
    if not _TEST.search(code):
        before[-1] = "def test_block() -> None:"
        code = textwrap.indent(code, "    ")
    return "\n".join([*before, code])


if __name__ == "__main__":
    write_blocks()
