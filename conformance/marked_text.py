"""The part of a document that a command writes: between two marks, the rest is by hand."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(<!-- from here on: [^>]* -->\n)(.*?)(<!-- up to here -->)", re.DOTALL)


def replace_marked(document: str, text: str) -> str:
    """The document with `text` between its marks. ValueError when it has none."""
    if not _MARKED.search(document):
        raise ValueError("the document has no marks to write between")
    return _MARKED.sub(lambda found: f"{found[1]}\n{text}\n{found[3]}", document, count=1)


def marked(document: str) -> str:
    """What stands between the marks. ValueError when there are none."""
    found = _MARKED.search(document)
    if found is None:
        raise ValueError("the document has no marks to read between")
    return found[2].strip("\n") + "\n"
