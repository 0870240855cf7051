"""A shell that runs the commands of a page and compares their output with the page's.

A command that only reads is repeated until its output fits, because records may still be on their way. Pages are written
for the default addresses. Here every platform listens on free ports: the default addresses in commands, files and
expected output are replaced.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidegate.components import FACES
from tidegate.examples.pages import Command
from tidegate.kit.errors import TidegateError

__all__ = ["PageNotFollowed", "Shell"]

_READING: Final = re.compile(
    r"^(ls|find|cat|head|curl -s http|python (count|check)\w*|tidegate (topics|groups|consume|status|(connectors|connectors offsets|schemas|events|events triggers) (list|status|get|describe|plugins)))\b"
)
_REWRITTEN: Final = (".py", ".cjs", ".json", ".properties", ".toml")
_PATIENCE_S: Final = 300


class PageNotFollowed(TidegateError):
    """A command of a page failed, or its output is not the page's."""


class Shell:
    """A shell session in ``folder``; variables and the working folder are kept between commands."""

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
            name: value
            for name, value in os.environ.items()
            if name not in ("TIDEGATE_DATA", "TIDEGATE_CONTEXT", "REQUESTS_CA_BUNDLE")
        }
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**kept, "PATH": programs, "COLUMNS": "120", **environment}
        self._state.write_text(f"cd '{folder}'\n")
        self._background: list[int] = []
        """Process groups; the last command's status is that of the shell, which doesn't wait for these."""

    def run(self, command: Command) -> str:
        """Run a command and return its output. Raises PageNotFollowed if it fails or the page shows other output."""
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
            if fits or not _READING.match(text) or time.monotonic() > deadline:
                break
            time.sleep(max(0.3, time.monotonic() - asked))  # leaves the processor to others half of the time
        shown = f"$ {text}\n{done.stdout}{done.stderr}"
        if done.returncode != 0:
            raise PageNotFollowed(f"exit status {done.returncode}:\n{shown}")
        if not fits:
            raise PageNotFollowed(f"the page shows\n{expected}\nbut it prints\n{shown}")
        return done.stdout

    def stop(self) -> None:
        """Stop the platforms and the background commands (``&``) that the page left running."""
        for state in self.folder.rglob("run/platform.json"):
            subprocess.run(
                [sys.executable, "-m", "tidegate.cli", "down", "--data", str(state.parents[1])],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
            )
        for group in self._background:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(group, signal.SIGTERM)

    def _once(self, text: str) -> subprocess.CompletedProcess[str]:
        script = f". '{self._state}'\n{text}\nstatus=$?\n{{ export -p; echo \"cd '$PWD'\"; }} > '{self._state}'\nexit $status\n"
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
        except BaseException:  # Ctrl-C reaches only this process, not the command's session
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGTERM)
            process.communicate()
            raise
        if text.endswith("&"):
            self._background.append(process.pid)
        return subprocess.CompletedProcess(text, process.returncode, out, err)

    def here(self, text: str) -> str:
        """The page's text with the addresses of this shell's platform."""
        return _replaced(text, self._moved)

    def _move_to_free_ports(self) -> None:
        (state,) = self.folder.rglob("run/platform.json")
        components = json.loads(state.read_text())["components"].values()
        self._moved = _moves({name: address for c in components for name, address in c["addresses"].items()})
        for path in self.folder.rglob("*"):
            if path.suffix in _REWRITTEN and "tidegate-data" not in path.parts:
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
