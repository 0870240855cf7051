"""Puts the rendered pictures in place of mermaid blocks when the docs site is built."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

__all__ = ["BLOCK", "FOLDER", "drawn", "missing", "picture_of"]

FOLDER: Final = Path(__file__).resolve().parent / "pictures"
BLOCK: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def picture_of(text: str) -> Path:
    """Where the picture of a mermaid block is."""
    return FOLDER / f"{hashlib.sha256(text.strip().encode()).hexdigest()[:12]}.svg"


def missing(pages: Iterable[Path]) -> list[Path]:
    """Those of the pages that have a mermaid block without a picture; `make pictures` draws it."""
    return [page for page in pages if not all(picture_of(text).exists() for text in BLOCK.findall(page.read_text()))]


def drawn(source: str, *_: Any, **__: Any) -> str:
    """A formatter of pymdownx.superfences, which shows the block's text if there is no picture: `missing` tells of those."""
    return f'<div class="picture">{picture_of(source).read_text()}</div>'
