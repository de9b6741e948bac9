"""Changes to the site: links out of `docs` lead to the repository, and what the theme lacks for screen readers."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_LINK = re.compile(r"\]\((\.\./[^)\s]*)\)")
_EMPTY_HEADING = re.compile(r"<th( [^>]*)?></th>")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace relative links that leave the folder of the documentation (an event of MkDocs).

    The search finds pages that help first, and evidence and explanations after them.
    """
    if page.file.src_uri.startswith(("evidence/", "explanation/")):
        page.meta["search"] = {"boost": 0.2}
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def in_repository(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        return link[0] if path.startswith("docs/") else f"]({config.extra['source_url']}/{path})"

    return _LINK.sub(in_repository, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search, and make empty headings of tables plain cells (an event of MkDocs)."""
    dialog = 'data-md-component="search" role="dialog"'
    return _EMPTY_HEADING.sub(r"<td\1></td>", output).replace(dialog, f'{dialog} aria-label="Search"')
