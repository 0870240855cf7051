"""``python -m tests.proofs [--short]``: run every proof; the long form writes its dated summary to docs/proofs."""

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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proofs")
    parser.add_argument("--short", action="store_true", help="the form that CI runs")
    arguments, rest = parser.parse_known_args()
    if arguments.short:
        # Those beside the everyday tests wait more than they work; those in tests/proofs measure, and each wants the machine.
        among = run(
            "proof and not long", "tests", "--ignore=tests/proofs", "--numprocesses=3", "--dist=loadfile", *rest
        )
        return run("proof and not long", "tests/proofs", *rest) or among
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
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows, failed = [], 0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        bad = case.find("failure") is not None or case.find("error") is not None
        failed += bad
        words = case.get("name", "").removeprefix("test_").replace("_", " ")
        noted = {p.get("name"): p.get("value") for p in case.iter("property")}
        details = ", ".join(f"{name}: {value}" for name, value in noted.items())
        rows.append(f"| {words} | {'FAILED' if bad else 'held'} | {float(case.get('time', 0)):.0f} s | {details} |")
    path = ROOT / "docs" / "proofs" / f"{today}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"# Proofs of {today}\n\n`make proof`, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}.\n\n"
        "| proof | result | took | numbers |\n|---|---|---|---|\n" + "\n".join(sorted(rows)) + "\n"
    )
    print(f"{len(rows) - failed} of {len(rows)} proofs held; {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
