"""``tidegate jobs`` on a worker, with a sink that writes down its ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.platform import RunningPlatform, running_platform, tidegate, until


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(tmp_path_factory.mktemp("jobs"), "--without", "events") as started:
        yield started


def jobs(platform: RunningPlatform, *arguments: Any, check: bool = True) -> str:
    done = tidegate("jobs", *arguments, "--data", platform.data, check=check)
    return done.stdout if check else done.stderr


def test_a_job_is_listed_shown_and_run_before_its_time(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1\n2\n3\n")
    tidegate("produce", "rows", tmp_path / "in", "--data", platform.data)
    job = {"connector__class": "tests.support.toys:RangesConnector", "topics": "rows", "file": tmp_path / "out"}
    platform.create("yearly", **job, job__schedule="0 0 1 1 *")
    text = "org.apache.kafka.connect.storage.StringConverter"
    platform.create(
        "plain", connector__class="FileStreamSink", topics="rows", file=tmp_path / "plain", value__converter=text
    )
    until(lambda: [told["name"] for told in json.loads(jobs(platform, "list", "--json"))] == ["yearly"], "one job")
    assert not (tmp_path / "out").exists()
    assert jobs(platform, "run", "yearly") == "yearly runs now\n"
    until(lambda: json.loads(jobs(platform, "show", "yearly", "--json"))["runs"], "a run")
    until(lambda: " done " in jobs(platform, "show", "yearly"), "a run that is done")
    (run,) = json.loads(jobs(platform, "show", "yearly", "--json"))["runs"]
    assert (run["state"], run["records"], run["partitions"]) == ("done", 3, 1)
    assert json.loads((tmp_path / "out").read_text())[1:] == [0, 3, run["id"]]
    header, row = jobs(platform, "list").splitlines()
    assert header.split() == ["job", "state", "last", "run", "began", "records", "next", "run"]
    assert row.split()[:3] == ["yearly", "RUNNING", "done"]
    assert "has no job that runs: only a sink that runs in jobs" in jobs(platform, "run", "plain", check=False)
    assert jobs(platform, "show", "plain", check=False) == (
        "error: connector plain has no job that runs; jobs are: yearly\n"
    )
    assert "Connector none not found" in jobs(platform, "show", "none", check=False)
