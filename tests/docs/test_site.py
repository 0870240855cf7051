"""The docs site: pictures are drawn, each page is in the navigation, and nothing is loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path

from tests.support.reference import build_site, pictures


def test_each_mermaid_block_is_drawn() -> None:
    pages = [build_site.ROOT / name for name in build_site.pages()]
    assert pictures.missing(pages) == [], "run: make pictures"


def test_a_block_that_was_not_drawn_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```mermaid\nflowchart LR\n    a --> b\n```\n")
    assert pictures.missing([page]) == [page]


def test_pictures_fetch_nothing_and_each_is_shown() -> None:
    shown = {
        pictures.picture_of(text)
        for name in build_site.pages()
        for text in pictures.BLOCK.findall((build_site.ROOT / name).read_text())
    }
    drawn = set(pictures.FOLDER.glob("*.svg"))
    assert shown == drawn
    for path in drawn:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, f"{path.name} fetches from elsewhere"


def test_each_page_is_in_the_navigation(tmp_path: Path) -> None:
    build_site.stage(tmp_path)

    def listed(entries: list) -> set[str]:
        names: set[str] = set()
        for entry in entries:
            inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
            names |= listed(inner) if isinstance(inner, list) else {inner}
        return names

    assert listed(build_site.navigation(tmp_path)) == set(build_site.pages())
