"""The units on the page about operating are units that systemd takes, and their command lines are commands of ours."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import ROOT, blocks

UNITS = dict(
    zip(
        ("tidegate.service", "tidegate@.service"),
        blocks(ROOT / "docs/how-to/operating.md", "ini"),
        strict=True,
    )
)


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(UNITS[name].text)
    return parser


@pytest.mark.parametrize("name", UNITS)
def test_systemd_takes_the_units(name: str, tmp_path: Path) -> None:
    """systemd's own check, where the machine has it: unknown keys and wrong values are its complaints."""
    assert set(unit(name).sections()) == {"Unit", "Service", "Install"}
    if (check := shutil.which("systemd-analyze")) is None:
        return
    text = UNITS[name].text.replace("/opt/tidegate/bin/tidegate", shutil.which("true") or "/bin/true")
    path = tmp_path / name.replace("@.", "@broker.")
    path.write_text(text.replace("User=tidegate", "User=root"))
    said = subprocess.run(
        [check, "verify", "--man=no", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert [line for line in said.stderr.splitlines() if str(path) in line] == []


@pytest.mark.parametrize("name", UNITS)
def test_the_command_of_a_unit_is_a_command(name: str) -> None:
    program, command, *_ = shlex.split(unit(name)["Service"]["ExecStart"])
    assert program.endswith("/bin/tidegate")
    said = subprocess.run(
        [sys.executable, "-m", "tidegate.cli", command, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"tidegate.cli {command} [OPTIONS]" in said.stdout
