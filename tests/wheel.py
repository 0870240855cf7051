"""``python -m tests.wheel``: build the wheel, install it alone into a new environment, and move lines through it.

What only a checkout has (a file the wheel forgot, a dependency only the tests install) shows up here. So does a dependency that says
it may be older than it may: all is done twice, with the versions of constraints.txt and with the lowest that pyproject.toml allows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-wheel-") as folder:
        scratch = Path(folder)
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--outdir", scratch, ROOT], check=True, stdout=subprocess.DEVNULL
        )
        (wheel,) = scratch.glob("*.whl")
        floors = scratch / "floors.txt"
        floors.write_text("\n".join(lowest_versions()) + "\n")
        for constraints in (ROOT / "constraints.txt", floors):
            try_wheel(wheel, constraints, scratch / constraints.stem)
            print(f"{wheel.name}: installed alone with {constraints.name}, ran, moved lines")
    return 0


def lowest_versions() -> Iterator[str]:
    """Every direct dependency of the small install, at the lowest version that is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"]:
        requirement = Requirement(text)
        (floor,) = (one.version for one in requirement.specifier if one.operator in (">=", "=="))
        yield f"{requirement.name}=={floor}"


def try_wheel(wheel: Path, constraints: Path, scratch: Path) -> None:
    environment = scratch / "venv"
    venv.create(environment, with_pip=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, wheel]
    subprocess.run([environment / "bin" / "python", *install], check=True)
    move_lines(environment / "bin" / "tidegate", scratch / "work")


def move_lines(tidegate: Path, work: Path) -> None:
    """`up`, a file source and a file sink, `down`, with the installed command only."""
    work.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TIDEGATE"))}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [tidegate, *arguments], cwd=work, env=clean, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            raise SystemExit(f"tidegate {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    lines = [f"line {number}" for number in range(1000)]
    (work / "in.txt").write_text("\n".join(lines) + "\n")
    string = "org.apache.kafka.connect.storage.StringConverter"
    common = {"tasks.max": "1", "key.converter": string, "value.converter": string}
    source = {
        "name": "in",
        "connector.class": "FileStreamSource",
        "file": str(work / "in.txt"),
        "topic": "lines",
        **common,
    }
    sink = {
        "name": "out",
        "connector.class": "FileStreamSink",
        "file": str(work / "out.txt"),
        "topics": "lines",
        **common,
    }
    for config in (source, sink):
        (work / f"{config['name']}.json").write_text(json.dumps(config))
    run("up", "--detach", "--broker-listen", "127.0.0.1:0")
    try:
        run("connectors", "apply", "in.json", "out.json")
        deadline = time.monotonic() + 60
        while not (work / "out.txt").exists() or (work / "out.txt").read_text().splitlines() != lines:
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"the lines did not arrive: {run('connectors', 'status', 'in')}{run('connectors', 'status', 'out')}"
                )
            time.sleep(0.1)
    finally:
        run("down")


if __name__ == "__main__":
    sys.exit(main())
