"""The fenced blocks of Markdown pages, and the commands in them.

A ``console`` block can be run: lines that begin with ``$`` are commands (``>`` continues a command), the lines after it
are its output, where ``...`` stands for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Block", "Command", "blocks", "commands", "prose"]

_FENCE: Final = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``language`` is the first word of its info string."""

    page: Path
    line: int
    language: str
    text: str


@dataclass(frozen=True)
class Command:
    text: str
    prints: str
    """The output that the page shows; empty if it shows none."""


def blocks(page: Path, *languages: str) -> list[Block]:
    """The fenced blocks of a page in these languages."""
    text = page.read_text()
    fences = [Block(page, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in _FENCE.finditer(text)]
    return [block for block in fences if block.language in languages]


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block with the output of each."""
    text: list[str] = []
    prints: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command("\n".join(text), "\n".join(prints))
            text, prints = [line[2:]], []
        elif (line.startswith("> ") or line == ">") and not prints:
            text.append(line[2:])
        else:
            assert text, f"{block.page}:{block.line}: output before the first command"
            prints.append(line)
    if text:
        yield Command("\n".join(text), "\n".join(prints))
