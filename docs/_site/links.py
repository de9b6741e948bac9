"""Links of pages to files outside `docs` lead to the repository: the site has no copies of them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_LINK = re.compile(r"\]\((\.\./[^)\s]*)\)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace relative links that leave the folder of the documentation (an event of MkDocs)."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def in_repository(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        return link[0] if path.startswith("docs/") else f"]({config.extra['source_url']}/{path})"

    return _LINK.sub(in_repository, markdown)
