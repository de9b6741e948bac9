"""The part of a document between two marks, which a command writes; the rest is written by hand."""

from __future__ import annotations

import re

_MARKED = re.compile(r"(<!-- from here on: [^>]* -->\n)(.*?)(<!-- up to here -->)", re.DOTALL)


def replace_marked(document: str, text: str) -> str:
    """Return the document with `text` between its marks. Raises ValueError if it has none."""
    if not _MARKED.search(document):
        raise ValueError("the document has no marks to write between")
    return _MARKED.sub(lambda found: f"{found[1]}\n{text}\n{found[3]}", document, count=1)


def marked(document: str) -> str:
    """Return the text between the marks. Raises ValueError if there are none."""
    found = _MARKED.search(document)
    if found is None:
        raise ValueError("the document has no marks to read between")
    return found[2].strip("\n") + "\n"
