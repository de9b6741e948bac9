"""The page's files, as they are shipped."""

from pathlib import Path

from mockraft.server import admin

PAGE = Path(admin.__file__).parent / "page"
SOURCES = sorted(path for path in PAGE.rglob("*") if path.suffix in {".js", ".css", ".html"})


def test_page_is_small_and_self_contained() -> None:
    texts = {path.name: path.read_text() for path in SOURCES}
    assert {name: text.count("\n") for name, text in texts.items() if text.count("\n") > 400} == {}
    assert [name for name, text in texts.items() if "//" in text.replace(" // ", "") and "https://" in text] == []
    assert len(texts) >= 15


def test_no_text_is_ever_read_as_markup() -> None:
    markup = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "style=")
    assert [(path.name, word) for path in SOURCES for word in markup if word in path.read_text()] == []
