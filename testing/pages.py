"""HTML pages from templates in mockraft's packages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mockraft.files.private_files import write_private
from mockraft.wire.printable import printable_value


def write_page(path: Path, folder: str, template: str, content: Mapping[str, object]) -> None:
    """Write the page of a template in a folder of `mockraft.testing`. OSError; ModuleNotFoundError without Jinja2."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("mockraft.testing", folder)
    environment = Environment(
        loader=loader, autoescape=True, finalize=printable_value, trim_blocks=True, lstrip_blocks=True
    )
    write_private(path, environment.get_template(template).render(content).encode())
