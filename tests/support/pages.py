"""The pages of this repository; `tidegate.examples` reads and follows them."""

from __future__ import annotations

from pathlib import Path

from tidegate.examples.pages import Block, Command, blocks, commands
from tidegate.examples.shell import PageNotFollowed, Shell

__all__ = ["ROOT", "Block", "Command", "PageNotFollowed", "Shell", "blocks", "commands", "generated", "id_of", "pages"]

ROOT = Path(__file__).parents[2]


def pages() -> list[Path]:
    """Every page that people write: not the generated reference, not the summaries of proofs."""
    written = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "proofs" and not generated(path)]
    return sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written, *(ROOT / "examples").rglob("*.md")])


def generated(page: Path) -> bool:
    """Whether `make docs` writes this page."""
    with page.open() as file:
        return file.readline().startswith("<!-- Made from ")


def id_of(block: Block) -> str:
    """The block's page and line, for test ids."""
    return f"{block.page.relative_to(ROOT)}:{block.line}"
