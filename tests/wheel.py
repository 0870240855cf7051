"""``python -m tests.wheel``: build the wheel, install it alone into a new environment, and pass lines through it.

This detects things that exist only in a checkout: a file missing in the wheel, or a dependency that only the tests
install. It also detects lower bounds that are too low: it runs twice, with the versions of constraints.txt and with the
lowest that pyproject.toml allows.

It writes dist/tidegate-VERSION.cdx.json, a CycloneDX list of everything that a small installation contains (SBOM);
``--sbom`` does only that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = "tidegate/examples/files/"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.wheel")
    parser.add_argument("--sbom", action="store_true", help="write the list of what is installed, and try nothing")
    only_sbom: bool = parser.parse_args().sbom
    with tempfile.TemporaryDirectory(prefix="tidegate-wheel-") as folder:
        scratch = Path(folder)
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--outdir", scratch, ROOT], check=True, stdout=subprocess.DEVNULL
        )
        (wheel,) = scratch.glob("*.whl")
        check_types(wheel)
        check_examples(wheel)
        if only_sbom:
            install(wheel, ROOT / "constraints.txt", scratch / "constraints")
            print(write_sbom(wheel, scratch))
            return 0
        floors = scratch / "floors.txt"
        floors.write_text("\n".join(lowest_versions()) + "\n")
        for constraints in (ROOT / "constraints.txt", floors):
            try_wheel(wheel, constraints, scratch / constraints.stem)
            print(f"{wheel.name}: installed alone with {constraints.name}, ran, moved lines")
        name_the_culprit(wheel, scratch / floors.stem / "venv", scratch)
        print("a distribution that overwrites our events/__init__.py is named")
        print(write_sbom(wheel, scratch))
    return 0


def lowest_versions() -> Iterator[str]:
    """Every direct dependency of the small install, at the lowest version that is allowed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"]:
        requirement = Requirement(text)
        (floor,) = (bound.version for bound in requirement.specifier if bound.operator in (">=", "=="))
        yield f"{requirement.name}=={floor}"


def check_types(wheel: Path) -> None:
    """Each package of the wheel declares that it has types; otherwise type checkers ignore them (PEP 561)."""
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
    missing = [name for name in packages() if f"{name}/py.typed" not in files]
    if missing:
        raise SystemExit(f"{wheel.name} has no py.typed in {', '.join(missing)}")


def check_examples(wheel: Path) -> None:
    """The wheel has the examples of the repository, and nothing that running them left there."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith(EXAMPLES)}
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "examples"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    expected = {EXAMPLES + name.removeprefix("examples/") for name in listed}
    if inside != expected:
        raise SystemExit(f"{wheel.name}: examples that differ from the repository's: {sorted(inside ^ expected)}")


def packages() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return listed


def try_wheel(wheel: Path, constraints: Path, scratch: Path) -> None:
    move_lines(install(wheel, constraints, scratch) / "bin" / "tidegate", scratch / "work")


def install(what: Path | str, constraints: Path, scratch: Path) -> Path:
    """A new environment with this and what it needs."""
    environment = scratch / "venv"
    venv.create(environment, with_pip=True)
    options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", constraints, what]
    subprocess.run([environment / "bin" / "python", *options], check=True)
    return environment


def name_the_culprit(wheel: Path, environment: Path, scratch: Path) -> None:
    """Events 0.5 installs events/__init__.py over ours: an error that names it; ours over theirs: a warning."""
    pip = [
        environment / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    tidegate = [environment / "bin" / "tidegate", "use"]

    def said(*options: str | Path) -> tuple[int, str]:
        subprocess.run([*pip, *options], check=True)
        done = subprocess.run(tidegate, cwd=scratch, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    over_ours = said("Events==0.5")
    if over_ours[0] != 1 or "Events 0.5 installed events/__init__.py too, over ours" not in over_ours[1]:
        raise SystemExit(f"Events over ours: {over_ours}")
    over_theirs = said("--force-reinstall", wheel)
    if over_theirs[0] != 0 or "warning: Events 0.5 installed events/__init__.py too" not in over_theirs[1]:
        raise SystemExit(f"ours over Events: {over_theirs}")


def write_sbom(wheel: Path, scratch: Path) -> Path:
    """The contents of the wheel's environment with constraints.txt, as CycloneDX; without the tool itself."""
    (tool,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["sbom"]
    tools = install(tool, ROOT / "constraints.txt", scratch / "tools")
    installed = scratch / "constraints" / "venv"
    # pip is in it because every environment has it; we do not bring it.
    pip = [installed / "bin" / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
    name, version = wheel.name.split("-")[:2]
    target = ROOT / "dist" / f"{name}-{version}.cdx.json"
    target.parent.mkdir(exist_ok=True)
    command = [tools / "bin" / "cyclonedx-py", "environment", "--pyproject", ROOT / "pyproject.toml"]
    options = ["--mc-type", "application", "--output-reproducible", "--output-file", target]
    subprocess.run([*command, *options, installed / "bin" / "python"], check=True)
    check_sbom(target)
    return target


def check_sbom(path: Path) -> None:
    """The list contains us, and each of our dependencies with its version."""
    document = json.loads(path.read_text())
    listed = {canonicalize_name(part["name"]) for part in document["components"] if part.get("version")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    missing = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]} - listed
    if missing or document["metadata"]["component"]["name"] != "tidegate":
        raise SystemExit(f"{path} lacks {', '.join(sorted(missing)) or 'tidegate itself'}")
    if "pip" in listed:
        raise SystemExit(f"{path} lists pip, which is not ours")


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
    listed = {entry["name"] for entry in json.loads(run("examples", "list", "--json"))}
    if listed != {page.parent.name for page in (ROOT / "examples").glob("*/README.md")}:
        raise SystemExit(f"examples list: {sorted(listed)}")
    run("up", "--detach", "--broker-listen", "127.0.0.1:0")
    try:
        page = urllib.request.urlopen(
            json.loads(run("status", "--json"))["addresses"]["console"] + "/", timeout=60
        ).read()
        if b"Tidegate</title>" not in page:
            raise SystemExit(f"the console shows no page: {page[:300]!r}")
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
