"""Builds the docs site into build/site with mkdocs, in strict mode: a link that leads nowhere fails.

Run by ``make docs-site``. Pages link to files beside docs/ (examples, CONTRIBUTING.md), which mkdocs does not look at; so the
Markdown files of the repository, and the files they link to, are copied into one folder first, under their own names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pictures import missing

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
TARGET: Final = ROOT / "build" / "site"
_LINK: Final = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_KINDS: Final = {
    "Tutorial": "tutorial",
    "How-to guides": "how-to",
    "Explanation": "explanation",
    "Reference": "reference",
}
_NAMES: Final = {"api": "Python API", "config": "Configuration keys", "connectors": "Connectors"}


def pages() -> list[str]:
    """The Markdown files of the site, by their paths in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return sorted(
        name for name in set(listed) if not name.startswith(("tests/", ".github/")) and (ROOT / name).exists()
    )


def stage(folder: Path) -> None:
    """Copy the pages, and the files that they link to, into a folder."""
    names = set(pages())
    for page in tuple(names):
        for target in _LINK.findall((ROOT / page).read_text()):
            path = (ROOT / page).parent / target
            if "://" not in target and path.is_file():
                names.add(os.path.relpath(path, ROOT))
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)


def navigation(folder: Path) -> list[Any]:
    """Home, the four kinds, examples, then what is about the project."""
    kinds = [{title: list(_tree(folder, Path("docs") / name))} for title, name in _KINDS.items()]
    examples = sorted(str(path.relative_to(folder)) for path in (folder / "examples").rglob("*.md"))
    project = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
    project += [{"Decision records": list(_tree(folder, Path("docs/decisions")))}]
    project += [{"Proofs": list(_tree(folder, Path("docs/proofs")))}]
    return [{"Home": "docs/README.md"}, *kinds, {"Examples": examples}, {"Project": project}]


def _tree(folder: Path, below: Path) -> Iterator[Any]:
    """A folder's pages, README first, then its folders."""
    current = folder / below
    files = sorted(current.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    yield from (str(path.relative_to(folder)) for path in files)
    for inner in sorted(path for path in current.iterdir() if path.is_dir()):
        if any(inner.rglob("*.md")):
            yield {_NAMES.get(inner.name, inner.name.capitalize()): list(_tree(folder, inner.relative_to(folder)))}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-site-") as scratch:
        folder = Path(scratch) / "pages"
        stage(folder)
        if undrawn := missing(folder.rglob("*.md")):
            names = ", ".join(str(page.relative_to(folder)) for page in undrawn)
            print(f"{names}: a mermaid block has no picture; run `make pictures`", file=sys.stderr)
            return 1
        settings = {
            "INHERIT": str(HERE / "mkdocs.yml"),
            "docs_dir": str(folder),
            "site_dir": str(TARGET),
            "nav": navigation(folder),
        }
        config = Path(scratch) / "mkdocs.yml"
        config.write_text(json.dumps(settings))  # which YAML takes, too
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", config]
        # mkdocs looks for `pictures`, which mkdocs.yml names, beside this file.
        environment = os.environ | {"PYTHONPATH": str(HERE), "NO_MKDOCS_2_WARNING": "true"}
        # With --quiet mkdocs doesn't count warnings, so its words are kept and shown if it fails.
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, sep="", file=sys.stderr)
    else:
        print(f"the docs site is in {TARGET.relative_to(ROOT)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
