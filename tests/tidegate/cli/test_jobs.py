"""``tidegate jobs``, and the console's pages of jobs, on a worker with a sink that writes down its ranges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.console import Visitor
from tests.support.platform import RunningPlatform, running_platform, tidegate, until


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(tmp_path_factory.mktemp("jobs"), "--without", "events", console=True) as started:
        yield started


def jobs(platform: RunningPlatform, *arguments: Any, check: bool = True) -> str:
    done = tidegate("jobs", *arguments, "--data", platform.data, check=check)
    return done.stdout if check else done.stderr


@pytest.fixture(scope="module")
def visitor(platform: RunningPlatform) -> Visitor:
    return Visitor(platform.addresses["console"])


def test_a_job_is_listed_shown_and_run_before_its_time(
    platform: RunningPlatform, visitor: Visitor, tmp_path: Path
) -> None:
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
    page = visitor.get("/jobs")
    assert "/jobs/yearly" in page and "/jobs/plain" not in page and ">done<" in page
    page = visitor.get("/jobs/yearly")
    assert run["id"] in page and "Run now" in page and "Cancel" not in page
    shown = visitor.post("/jobs/yearly/preview", 200)
    assert "<pre" in shown and platform.bootstrap_servers in shown
    assert "Connector none not found" in visitor.get("/jobs/none", 404)
    assert "has no job that runs: only a connector that runs in jobs" in jobs(platform, "run", "plain", check=False)
    assert jobs(platform, "show", "plain", check=False) == (
        "error: connector plain has no job that runs; jobs are: yearly\n"
    )
    assert "Connector none not found" in jobs(platform, "show", "none", check=False)


def test_a_run_is_cancelled_and_comes_again_and_a_failed_job_is_retried(
    platform: RunningPlatform, visitor: Visitor, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("1\n2\n3\n")
    tidegate("produce", "cancelled", tmp_path / "in", "--data", platform.data)
    job = {"connector__class": "tests.support.toys:RangesConnector", "topics": "cancelled", "file": tmp_path / "out"}
    platform.create("slow", **job, job__schedule="0 0 1 1 *", fail__until=tmp_path / "gate")
    assert "has no run of a job under way" in jobs(platform, "cancel", "slow", check=False)

    def runs() -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = json.loads(
            jobs(platform, "list", "--json")
        )  # without a job that is being restarted
        return next((job["runs"] for job in told if job["name"] == "slow"), [])

    jobs(platform, "run", "slow")
    until(lambda: [run["state"] for run in runs()] == ["running"], "a run")
    page = visitor.get("/jobs/slow")
    assert "Cancel the run" in page
    assert jobs(platform, "cancel", "slow") == "slow is cancelled\n"
    until(lambda: [run["state"] for run in runs()] == ["cancelled"], "a run that is cancelled")
    assert platform.runs("slow")
    (tmp_path / "out").unlink()
    (tmp_path / "out").mkdir()  # the next run fails
    assert visitor.post("/jobs/slow/do/run") == "/jobs/slow"
    until(lambda: "FAILED" in jobs(platform, "list"), "a job that has failed")
    assert "Retry" in visitor.get("/jobs/slow") and "can&#39;t be done to a job" in visitor.post("/jobs/slow/do/x", 400)
    (tmp_path / "out").rmdir()
    (tmp_path / "gate").touch()
    assert jobs(platform, "retry", "slow") == "slow runs again\n"
    until(lambda: (tmp_path / "out").exists() and [run["state"] for run in runs()] == ["done"], "a run that is done")
    (again,) = runs()
    assert (again["repeated"], again["records"]) == (True, 3)
    assert "job cancelled" in jobs(platform, "logs", "slow")
