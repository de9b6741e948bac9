"""`python -m tools.pages [NAME …]`: write pages of the documentation, or their parts between two marks, anew.

Without names all but `conformance`, whose table is made of runs on mockraft and on Kafka's own controller (Java, a
minute or two). Tests compare each page with what is written here, as far as no Kafka is needed for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from tools.pages import behaviours, conformance_table, differences, release_changes, serve_options
from tools.pages.marked_text import replace_marked

DOCS = Path(__file__).parents[2] / "docs"
PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "differences": ("explanation/differences.md", differences.as_markdown),
    "release-changes": ("evidence/release-changes.md", release_changes.as_markdown),
    "conformance": ("how-to/checks/conformance.md", conformance_table.written_anew),
}
"""The pages of which a part is written, by name."""
WHOLE: dict[str, tuple[str, Callable[[], str]]] = {
    "behaviours": ("reference/behaviours.md", behaviours.as_markdown),
    "serve-options": ("reference/serve-options.md", serve_options.as_markdown),
}
"""The pages that are written as a whole, by name."""


def main() -> None:
    """Write the pages that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tools.pages", description="Write pages of docs/ anew.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join((*WHOLE, *PARTS))}")
    names = parser.parse_args().names or [*WHOLE, "differences", "release-changes"]
    for name in names:
        if name in WHOLE:
            path, make = DOCS / WHOLE[name][0], WHOLE[name][1]
            path.write_text(make(), encoding="utf-8")
        elif name in PARTS:
            path, make = DOCS / PARTS[name][0], PARTS[name][1]
            path.write_text(replace_marked(path.read_text(encoding="utf-8"), make()), encoding="utf-8")
        else:
            parser.error(f"there is no page {name}")


if __name__ == "__main__":
    main()
