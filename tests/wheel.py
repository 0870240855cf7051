"""``python -m tests.wheel``: build the wheel, install it alone into a new environment, and move lines through it.

What only a checkout has (a file the wheel forgot, a dependency only the tests install) shows up here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tidegate-wheel-") as folder:
        scratch = Path(folder)
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--outdir", scratch, ROOT], check=True, stdout=subprocess.DEVNULL
        )
        (wheel,) = scratch.glob("*.whl")
        environment = scratch / "venv"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        subprocess.run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--constraint",
                ROOT / "constraints.txt",
                wheel,
            ],
            check=True,
        )
        move_lines(environment / "bin" / "tidegate", scratch / "work")
    print(f"{wheel.name}: installed alone, ran, moved lines")
    return 0


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
