"""HTML pages from the templates that lie in mockraft's packages, and text for XML files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_page(package: str, template: str, content: Mapping[str, object]) -> bytes:
    """Return the page of a template without others in it. ModuleNotFoundError without Jinja2."""
    from jinja2 import Environment

    text = resources.files(package).joinpath(template).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text).render(content).encode()


def xml_text(text: str) -> str:
    """Return a text with U+FFFD in place of each character that XML cannot express."""
    return _NO_XML.sub("\ufffd", text)
