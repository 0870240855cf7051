"""The fenced blocks of Markdown pages, and a shell that runs those a page says can be run.

A ``console`` block is run: lines that begin with ``$`` are commands (``>`` continues one), what follows is what they print,
where ``...`` stands for anything. A command that only looks is repeated until it prints that, since what it looks at may
still be on its way. Pages are written for the default addresses; here every platform listens on free ports, and the
default addresses in commands, files and expected output are replaced by those.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate.components import FACES

__all__ = ["ROOT", "Block", "Command", "Shell", "blocks", "commands", "generated", "pages"]

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LOOKING = re.compile(
    r"^(ls|find|cat|head|curl -s http|python count\w*|tidegate (topics|groups|consume|status|(connectors|connectors offsets|schemas|events|events triggers) (list|status|get|describe|plugins)))\b"
)
_PATIENCE_S = 300


@dataclass(frozen=True)
class Block:
    """A fenced block; ``language`` is its info string's first word."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    text: str
    prints: str
    """The text that the page shows; empty where it shows none."""


def pages() -> list[Path]:
    """Every page that people write: not the generated reference, not the summaries of proofs."""
    written = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "proofs" and not generated(path)]
    return sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written, *(ROOT / "examples").rglob("*.md")])


def generated(page: Path) -> bool:
    """Whether `make docs` writes this page."""
    with page.open() as file:
        return file.readline().startswith("<!-- Made from ")


def blocks(page: Path, *languages: str) -> list[Block]:
    """The fenced blocks of a page in these languages."""
    text = page.read_text()
    fences = [Block(page, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in _FENCE.finditer(text)]
    return [block for block in fences if block.language in languages]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block with what each prints."""
    text: list[str] = []
    prints: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if text:
                yield Command("\n".join(text), "\n".join(prints))
            text, prints = [line[2:]], []
        elif line.startswith("> ") and not prints:
            text.append(line[2:])
        else:
            assert text, f"{block.id}: output before the first command"
            prints.append(line)
    if text:
        yield Command("\n".join(text), "\n".join(prints))


class Shell:
    """A shell session in ``folder``; variables and working folder are kept between commands."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        addresses: Mapping[str, str] | None = None,
        replaced: Mapping[str, str] | None = None,
    ) -> None:
        """``addresses`` are those of a platform that runs already; ``replaced`` are further texts of the page."""
        self.folder, self._state = folder, folder / ".shell-state"
        self._moved = {**(_moves(addresses) if addresses else {}), **(replaced or {})}
        kept = {
            name: value for name, value in os.environ.items() if name not in ("TIDEGATE_DATA", "REQUESTS_CA_BUNDLE")
        }
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**kept, "PATH": programs, "COLUMNS": "120", **environment}
        self._state.write_text(f"cd {folder}\n")
        self._background: list[subprocess.Popen[str]] = []

    def run(self, command: Command) -> None:
        """Run one command and hold it to what the page says it prints; raises AssertionError."""
        text = self.here(command.text)
        if text.startswith("tidegate up "):
            text = text.replace("tidegate up ", "tidegate up --broker-listen 127.0.0.1:0 ", 1)
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            asked = time.monotonic()
            done = self._once(text)
            if text.startswith("tidegate up ") and done.returncode == 0:
                self._move_to_free_ports()
            expected = self.here(command.prints).strip()
            fits = done.returncode == 0 and (not expected or _fits(expected, done.stdout.strip()))
            if fits or not _LOOKING.match(text) or time.monotonic() > deadline:
                break
            time.sleep(max(0.3, time.monotonic() - asked))  # leaves the processor to others half of the time
        shown = f"$ {text}\n{done.stdout}{done.stderr}"
        assert done.returncode == 0, f"exit status {done.returncode}:\n{shown}"
        assert fits, f"the page shows\n{expected}\nbut it prints\n{shown}"

    def stop(self) -> None:
        """End the platforms that the page left running."""
        for state in self.folder.rglob("run/platform.json"):
            subprocess.run(
                [sys.executable, "-m", "tidegate.cli", "down", "--data", str(state.parents[1])],
                check=True,
                timeout=_PATIENCE_S,
            )

    def _once(self, text: str) -> subprocess.CompletedProcess[str]:
        script = (
            f". {self._state}\n{text}\nstatus=$?\n{{ export -p; echo \"cd '$PWD'\"; }} > {self._state}\nexit $status\n"
        )
        process = subprocess.Popen(
            ["bash", "-c", script],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            return subprocess.CompletedProcess(text, -9, out, f"{err}\nnot done within {_PATIENCE_S} s")
        return subprocess.CompletedProcess(text, process.returncode, out, err)

    def here(self, text: str) -> str:
        """The page's text with the addresses of this place."""
        return _replaced(text, self._moved)

    def _move_to_free_ports(self) -> None:
        (state,) = self.folder.rglob("run/platform.json")
        components = json.loads(state.read_text())["components"].values()
        self._moved = _moves({name: address for c in components for name, address in c["addresses"].items()})
        for path in self.folder.rglob("*"):
            if path.suffix in (".py", ".cjs", ".json", ".properties") and "tidegate-data" not in path.parts:
                path.write_text(self.here(path.read_text()))


def _moves(addresses: Mapping[str, str]) -> dict[str, str]:
    """Default addresses to the real ones, as host:port."""
    real = {face: re.sub(r"^https?://|/metrics$", "", address) for face, address in addresses.items()}
    return {face.default: real[name] for name, face in FACES.items() if name in real}


def _replaced(text: str, moved: Mapping[str, str]) -> str:
    if not moved:
        return text
    return re.sub("|".join(map(re.escape, moved)), lambda match: moved[match[0]], text)


def _fits(expected: str, printed: str) -> bool:
    """Whether the output is as shown, line by line; ``...`` stands for any text, and runs of spaces are equal to one."""

    def tidy(text: str) -> str:
        return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())

    pattern = ".*".join(re.escape(part) for part in tidy(expected).split("..."))
    return re.fullmatch(pattern, tidy(printed), re.DOTALL) is not None
