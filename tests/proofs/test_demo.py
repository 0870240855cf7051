"""The whole demo: it checks every count that it prints against a second source and fails on a mismatch."""

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow.dataset as ds
import pytest

from tests.proofs import effort

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(900)]


def demo(*options, cwd):
    command = [sys.executable, "-m", "tidegate.cli", "demo", "--folder", "demo", *options]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout, time.monotonic() - began


@pytest.mark.parametrize("database", ["sqlite", "postgresql"][: effort(1, 2)])
def test_the_demo_carries_every_flight(database, tmp_path, request, record_property):
    options = [] if database == "sqlite" else ["--database", request.getfixturevalue("postgres_server").url]
    printed, seconds = demo(*options, cwd=tmp_path)
    assert "every count agrees" in printed and "DIFFERS" not in printed
    assert ds.dataset(tmp_path / "demo/parquet/flights", format="parquet", partitioning="hive").count_rows() == 336_781
    assert not leftovers(tmp_path), "the demo stops what it started"
    record_property("database", database)
    record_property("seconds", round(seconds))


def leftovers(folder: Path) -> list[int]:
    state = json.loads((folder / "demo/platform/run/platform.json").read_text())
    return [
        pid
        for pid in (state["pid"], *(c["pid"] for c in state["components"].values()))
        if pid
        and psutil.pid_exists(pid)
        and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # nobody waits for it
    ]
