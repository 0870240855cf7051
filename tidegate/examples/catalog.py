"""The examples, and the programs and packages that each needs.

A README says "needs `pip install ...`" or "needs `npm install ...`". That sentence is read here, so it is written once.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from tidegate.examples.pages import Command, blocks, commands, prose
from tidegate.kit.errors import UsageError

__all__ = ["Example", "example", "examples"]

_NEEDS: Final = re.compile(r"needs\s+`(pip|npm) install ([^`]+)`")
_JAVA: Final = re.compile(r"\bJava 17 or 21\b")
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A folder with a README to follow."""

    name: str
    folder: Path

    @property
    def page(self) -> Path:
        return self.folder / "README.md"

    @cached_property
    def title(self) -> str:
        match = _TITLE.search(self.page.read_text())
        return match[1] if match else self.name

    def commands(self) -> list[Command]:
        """The commands of the README, in order; none if the example can run only by hand."""
        return [command for block in blocks(self.page, "console") for command in commands(block)]

    def lacks(self) -> list[str]:
        """The parts that this machine lacks, as text for users: a program, or the command that installs packages."""
        if not self.commands():
            return ["an account elsewhere; copy it and follow its README"]
        text = prose(self.page)
        lacking = []
        for program, arguments in _NEEDS.findall(text):
            names = shlex.split(arguments)
            if program == "npm" and shutil.which("node") is None:
                lacking.append("Node.js")
            elif program == "npm":
                lacking += [f"npm install {' '.join(names)}"] * (not all(map(_resolved_by_node, names)))
            elif missing := [name for name in names if any(_missing(Requirement(name)))]:
                lacking.append(f"pip install {' '.join(map(shlex.quote, missing))}")
        if _JAVA.search(text) and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
            lacking.append("Java 17 or 21")
        return lacking


def examples() -> list[Example]:
    """Every example, by name."""
    return [Example(page.parent.name, page.parent) for page in sorted(_folder().glob("*/README.md"))]


def example(name: str) -> Example:
    """Raises UsageError with the nearest names if there is no such example."""
    by_name = {known.name: known for known in examples()}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name)
    known = f"did you mean {' or '.join(near)}?" if near else "`tidegate examples list` lists them"
    raise UsageError(f"no example {name!r}: {known}")


def _folder() -> Path:
    """Beside this file in an installed wheel, at the top in a checkout."""
    installed = Path(__file__).parent / "files"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "examples"


def _missing(requirement: Requirement) -> Iterator[str]:
    """The distributions that are not installed, of a requirement and of its extras."""
    try:
        distribution = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        yield requirement.name
        return
    for extra in requirement.extras:
        for text in distribution.requires or ():
            needed = Requirement(text)
            if needed.marker and needed.marker.evaluate({"extra": extra}) and not needed.marker.evaluate({"extra": ""}):
                yield from _missing(needed)


def _resolved_by_node(package: str) -> bool:
    """Whether Node finds the package (``name@version``) from the current folder or NODE_PATH."""
    name = package[0] + package[1:].partition("@")[0]
    asked = ["node", "-e", f"require.resolve({name!r})"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0
