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
    report = Path(tempfile.mkdtemp(prefix="tidegate-proofs-")) / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "proof and not long" if arguments.short else "proof",
        f"--junit-xml={report}",
        "--override-ini=junit_family=xunit1",
        "--timeout=3600",
        *rest,
        "tests",
    ]
    environment = os.environ | {"TIDEGATE_PROOF": "short" if arguments.short else "long"}
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if not arguments.short and report.exists():
        write_summary(report)
    return status


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
