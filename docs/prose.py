"""Wraps the prose of all written pages at 100 columns. ``--check`` compares instead and fails when a page differs.

Run by ``make format``; ``make check`` runs it with ``--check``. Generated pages are left alone: `docs/generate.py` writes them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import mdformat

ROOT: Final = Path(__file__).resolve().parent.parent
_GENERATED: Final = "<!-- Made from "
_OPTIONS: Final = {"wrap": 100, "compact_tables": True}


def written_pages() -> list[Path]:
    """The Markdown files that people write: those in git, without generated pages and the summaries of proofs."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    paths = [ROOT / name for name in sorted(set(listed)) if not name.startswith(("docs/proofs/", ".github/"))]
    return [path for path in paths if path.exists() and not path.read_text().startswith(_GENERATED)]


def formatted(text: str) -> str:
    return mdformat.text(text, options=_OPTIONS, extensions={"gfm", "tables"})


def main(arguments: list[str]) -> int:
    pages = {path: path.read_text() for path in written_pages()}
    differing = {path: new for path, text in pages.items() if (new := formatted(text)) != text}
    if "--check" in arguments:
        names = ", ".join(str(path.relative_to(ROOT)) for path in differing)
        if differing:
            print(f"not wrapped at 100 columns: {names}; run `make format`", file=sys.stderr)
        return 1 if differing else 0
    for path, new in differing.items():
        path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
