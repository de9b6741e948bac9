"""HTML pages from the templates that lie in mockraft's packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources


def render_page(package: str, template: str, content: Mapping[str, object]) -> bytes:
    """Return the page of a template without others in it. ModuleNotFoundError without Jinja2."""
    from jinja2 import Environment

    text = resources.files(package).joinpath(template).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(text).render(content).encode()
