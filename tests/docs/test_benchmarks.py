"""The table at the top of the benchmarks page comes from the result files, and each file is linked."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from bench.capacity import SECTIONS
from tests.support.pages import ROOT

PAGE = ROOT / "docs/explanation/benchmarks.md"
FIGURES = sorted((PAGE.parent / "benchmarks").glob("*.csv"))
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text().partition("\n| --")[2].partition("\n\n")[0].splitlines()[1:]
]


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d),(?=\d{3})", "", text))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_a_row_of_its_file(row: list[str]) -> None:
    _, _, ours, theirs, ratio, link = row
    path = PAGE.parent / re.findall(r"\(([^)]*)\)", link)[0]
    figures = [numbers(ours)[0], numbers(theirs)[-1], numbers(ratio)[0]]
    with path.open() as file:
        lines = [numbers(" ".join(line)) for line in csv.reader(file)]
    assert any(all(figure in line for figure in figures) for line in lines), f"{path.name} has no row with {figures}"


def test_the_page_begins_with_the_table() -> None:
    assert PAGE.read_text().splitlines()[2].startswith("| measured |")
    assert len(ROWS) >= 10


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_file_of_figures_is_a_table_that_the_page_links(path: Path) -> None:
    with path.open() as file:
        lines = list(csv.reader(file))
    assert len(lines) > 1
    assert {len(line) for line in lines} == {len(lines[0])}
    assert f"(benchmarks/{path.name})" in PAGE.read_text()


def test_the_capacity_page_has_every_section_of_its_benchmark() -> None:
    page = (ROOT / "docs/reference/capacity.md").read_text()
    assert set(re.findall(r"python -m bench\.capacity ([a-z-]+)", page)) == SECTIONS.keys()
