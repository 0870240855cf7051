"""A platform on several hosts while its processes are killed and frozen, hosts are cut off, disks are slow or full, and clocks jump.

The hosts are network namespaces. TIDEGATE_SEEDS=3,7-9 chooses seeds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.proofs import effort, run_seeds, seeds
from tests.support.hosts import apart, why_not
from tests.support.pages import ROOT

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers, pytest.mark.timeout(6 * 3600)]

SECONDS: Final = effort(150, 600)
EARLIER: Final = "83d013ea"
"""The code of 2026-11-25. Nothing is released yet; later it is the tag of the last release."""


@pytest.fixture(autouse=True)
def namespaces() -> None:
    if (reason := why_not()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def alone(module: str, *arguments: str, log: Path) -> None:
    with log.open("wb") as output:
        done = subprocess.run(
            apart([sys.executable, "-m", module, *arguments]), stdout=output, stderr=subprocess.STDOUT, check=False
        )
    assert done.returncode == 0, "\n".join(log.read_text().splitlines()[-30:])


@pytest.mark.parametrize("over", ["apache", "ours"])
def test_everything_is_on_both_sides_whatever_happens_to_hosts(
    tmp_path: Path, record_property: Any, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    monkeypatch.setenv("TIDEGATE_SEEDS_AT_ONCE", "1")  # a seed is a dozen processes
    every: list[dict[str, Any]] = []

    def run(seed: int, folder: Path) -> str:
        brokers = ["ours"] if over == "ours" else []
        alone("tests.proofs.chaos", str(seed), str(SECONDS), str(folder), *brokers, log=tmp_path / f"{seed}.log")
        figures = json.loads((folder / "figures.json").read_text())
        every.append(figures)
        return str(figures)

    run_seeds(run, seeds(8, 20), tmp_path, record_property)
    recoveries = [each for figures in every for each in figures["recoveries"]]
    record_property("faults", dict(sum((Counter(figures["faults"]) for figures in every), Counter())))
    for what in ("lines", "orders", "changes", "registrations", "events"):
        record_property(what, sum(figures[what] for figures in every))
    record_property("recovery s, median", round(statistics.median(recoveries), 1))
    record_property("recovery s, worst", max(recoveries))


def test_a_query_ends_when_the_host_of_its_database_is_gone(tmp_path: Path) -> None:
    alone("tests.proofs.chaos.gone", log=tmp_path / "log")


def test_several_machines_are_upgraded_one_process_after_the_other_as_the_page_says(tmp_path: Path) -> None:
    alone("tests.proofs.chaos.machines", str(tmp_path / "machines"), log=tmp_path / "log")


def test_several_machines_are_upgraded_from_an_earlier_version_and_rolled_back(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    archive = subprocess.run(["git", "archive", EARLIER], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "--extract"], cwd=earlier, input=archive.stdout, check=True)
    alone("tests.proofs.chaos.machines", str(tmp_path / "machines"), str(earlier), log=tmp_path / "log")
