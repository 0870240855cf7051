"""``python -m tests.proofs [--short] [pytest's options]``: run every proof, or those that ``-k`` selects.

The short form runs the tests marked ``original``, too.

The long form writes its dated summary to docs/proofs. It takes hours; run in parts on one day, each part puts its lines into that
day's page in place of those of the same proofs.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOAK = "tests/proofs/test_soak.py"
SHORT = "proof and not long"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs")
    parser.add_argument("--short", action="store_true", help="the form that CI runs")
    arguments, rest = parser.parse_known_args()
    if arguments.short:
        # Most wait more than they work, so they run beside each other. The soak wants the machine to itself: it judges memory.
        beside = ("--numprocesses=3", "--dist=loadfile", "--no-loadscope-reorder")
        together = run(f"({SHORT}) or (original and not proof)", "tests", f"--ignore={SOAK}", *beside, *rest)
        return run(SHORT, SOAK, *rest) or together
    report = Path(tempfile.mkdtemp(prefix="tidegate-proofs-")) / "report.xml"
    status = run("proof", "tests", f"--junit-xml={report}", "--override-ini=junit_family=xunit1", *rest, form="long")
    if report.exists():
        write_summary(report)
    return status


def run(marks: str, *arguments: str, form: str = "short") -> int:
    """pytest over the tests with these marks; its exit status."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", marks, "--timeout=3600", "--durations=15", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"TIDEGATE_PROOF": form}, check=False).returncode


def write_summary(report: Path) -> None:
    path = ROOT / "docs" / "proofs" / f"{datetime.datetime.now(datetime.UTC).date().isoformat()}.md"
    path.parent.mkdir(exist_ok=True)
    # The lines there are by the proof's name, the first cell.
    rows = {line.split(" | ")[0]: line for line in path.read_text().splitlines()[6:]} if path.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    ran = failed = 0
    suites: dict[str, list[tuple[bool, float, str]]] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        ran, failed = ran + 1, failed + bad
        _, _, owner = case.get("classname", "").rpartition(".")
        if owner.startswith("Test"):
            on = case.get("name", "").partition("[")[2].partition("]")[0].partition("-")[0]
            suites.setdefault(f"| {owner}{on and f' on {on}'}", []).append(
                (bad, float(case.get("time", 0)), case.get("name", ""))
            )
            continue
        name = f"| {case.get('classname', '').rpartition('.')[2].removeprefix('test_')}: {case.get('name', '').removeprefix('test_')}"
        noted = {p.get("name"): p.get("value") for p in case.iter("property")}
        details = ", ".join(f"{key}: {value}" for key, value in noted.items())
        took = float(case.get("time", 0))
        rows[name.replace("_", " ")] = " | ".join(
            (name.replace("_", " "), "FAILED" if bad else "held", f"{took:.0f} s", commit, f"{details} |")
        )
    for name, cases in suites.items():
        bad_ones = [case for is_bad, _, case in cases if is_bad]
        result = "FAILED" if bad_ones else "held"
        took = sum(seconds for _, seconds, _ in cases)
        about = ", ".join([f"tests: {len(cases)}", *(f"failed: {case}" for case in bad_ones)])
        title = name.replace("_", " ")
        rows[title] = f"{title} | {result} | {took:.0f} s | {commit} | {about} |"
    head = f"`make proof`, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}."
    table = ["| proof | result | took | commit | numbers |", "|---|---|---|---|---|", *sorted(rows.values())]
    path.write_text("\n".join([f"# Proofs of {path.stem}", "", head, "", *table, ""]))
    print(f"{ran - failed} of {ran} proofs held; {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
