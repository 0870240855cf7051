"""``tidegate connectors offsets|restart|logs``: nothing changes unless told, and the state before comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.platform import RunningPlatform, running_platform, tidegate, until

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changing")


@pytest.fixture(scope="module")
def platform(folder: Path) -> Iterator[RunningPlatform]:
    """A source of three lines, and a sink that has written them to a file."""
    (folder / "lines.txt").write_text("a\nb\nc\n")
    with running_platform(folder, "--without", "events") as started:
        text = {"value__converter": TEXT}
        started.create("lines", connector__class=SOURCE, file=folder / "lines.txt", topic="lines", **text)
        started.create("out", connector__class=SINK, file=folder / "out.txt", topics="lines", **text)
        until(lambda: written(folder) == ["a", "b", "c"], "three lines")
        until(lambda: offsets(started, "out") == [3], "a committed offset")
        until(lambda: offsets(started, "lines") == [6], "a committed position")
        yield started


def written(folder: Path) -> list[str]:
    return (folder / "out.txt").read_text().split() if (folder / "out.txt").exists() else []


def command(platform: RunningPlatform, *arguments: Any, check: bool = True) -> subprocess.CompletedProcess[str]:
    return tidegate("connectors", *arguments, "--data", platform.data, check=check)


def offsets(platform: RunningPlatform, name: str) -> list[int]:
    told = json.loads(command(platform, "offsets", "get", name, "--json").stdout)["offsets"]
    return [next(iter(entry["offset"].values())) for entry in told]


def states(platform: RunningPlatform, name: str) -> list[str]:
    """Of the connector and its tasks; none while a new connector has no status."""
    done = command(platform, "status", name, "--json", check=False)
    if done.returncode:
        assert "No status found" in done.stderr
        return []
    told = json.loads(done.stdout)
    return [part["state"] for part in (told["connector"], *told["tasks"])]


def test_offsets_change_only_when_told_and_only_of_what_is_stopped(platform: RunningPlatform, folder: Path) -> None:
    dry = command(platform, "offsets", "set", "out", "--at", "lines:0=2")
    assert dry.stdout.splitlines()[1].split() == [
        "kafka_topic=lines",
        "kafka_partition=0",
        "kafka_offset=3",
        "kafka_offset=2",
    ]
    assert dry.stdout.splitlines()[-1] == "nothing is changed: --execute does it (out is RUNNING: it needs --stop too)"
    refused = command(platform, "offsets", "set", "out", "--at", "lines:0=2", "--execute", check=False)
    assert refused.returncode == 1 and refused.stderr.startswith("error: out is RUNNING: its offsets change only while")
    for at, words in (
        ("lines:0=4", "The position 4 of lines-0 is beyond its end, which is 3: give 3 or less"),
        ("line:0=2", "The position 2 is for line-0, and there is no such topic or partition"),
    ):
        wrong = command(platform, "offsets", "set", "out", "--at", at, "--execute", "--stop", check=False)
        assert (wrong.returncode, wrong.stderr) == (1, f"error: {words}\n")
    assert offsets(platform, "out") == [3] and written(folder) == ["a", "b", "c"]
    until(lambda: states(platform, "out") == ["RUNNING", "RUNNING"], "the sink runs again")
    command(platform, "offsets", "set", "out", "--at", "lines:0=2", "--execute", "--stop")
    until(lambda: written(folder) == ["a", "b", "c", "c"], "the last line again")
    until(lambda: states(platform, "out") == ["RUNNING", "RUNNING"], "the sink runs again")


def test_offsets_of_a_paused_source_are_set_from_a_file_and_it_stays_paused(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    command(platform, "pause", "lines")
    until(lambda: states(platform, "lines") == ["PAUSED", "PAUSED"], "a pause")
    document = json.loads(command(platform, "offsets", "get", "lines", "--json").stdout)
    document["offsets"][0]["offset"]["position"] = 2
    (tmp_path / "offsets.json").write_text(json.dumps(document))
    done = command(platform, "offsets", "set", "lines", tmp_path / "offsets.json", "--execute", "--stop", "--json")
    (change,) = json.loads(done.stdout)["changes"]
    assert (change["partition"], change["to"]) == (document["offsets"][0]["partition"], {"position": 2})
    assert offsets(platform, "lines") == [2]
    until(lambda: states(platform, "lines")[0] == "PAUSED", "it is paused as before")
    dry = json.loads(command(platform, "offsets", "reset", "lines", "--json").stdout)
    assert (dry["executed"], [change["to"] for change in dry["changes"]]) == (False, [None])
    command(platform, "offsets", "reset", "lines", "--execute", "--stop")
    assert offsets(platform, "lines") == []
    assert command(platform, "offsets", "get", "lines").stdout == "lines has committed no offsets\n"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["set", "out"], 2, "give FILE or --at TOPIC:PARTITION=OFFSET, one of them"),
        (["set", "out", "--at", "lines=2"], 2, "--at 'lines=2': give TOPIC:PARTITION=OFFSET, such as orders:0=1200"),
        (["set", "out", "/nowhere.json"], 1, "cannot read /nowhere.json: No such file or directory"),
        (["get", "nope"], 1, "error: Connector nope not found"),
        (["set", "lines", "--at", "lines:0=2"], 1, "error: lines is a source, and --at gives offsets of sinks"),
    ],
)
def test_wrong_offsets_are_named(platform: RunningPlatform, arguments: list[str], status: int, words: str) -> None:
    failed = command(platform, "offsets", *arguments, check=False)
    assert failed.returncode == status and words in failed.stderr


def test_a_file_without_offsets_is_refused(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text('{"offsets": {"a": 1}}')
    failed = command(platform, "offsets", "set", "out", tmp_path / "wrong.json", check=False)
    assert failed.stderr.startswith(f"error: {tmp_path}/wrong.json holds no offsets: give ")


def test_only_what_failed_is_restarted(platform: RunningPlatform, folder: Path, tmp_path: Path) -> None:
    assert command(platform, "restart", "--all-failed").stdout == "nothing has failed\n"
    config = {"connector.class": SINK, "topics": "lines", "file": str(tmp_path / "out"), "value.converter": JSON}
    (tmp_path / "broken.json").write_text(json.dumps(config))
    command(platform, "apply", tmp_path / "broken.json")
    until(lambda: states(platform, "broken") == ["RUNNING", "FAILED"], "the failure")
    assert command(platform, "restart", "out", "--failed").stdout == "out has not failed\n"
    assert command(platform, "restart", "--all-failed").stdout == "broken restarted: task 0\n"
    until(lambda: states(platform, "broken") == ["RUNNING", "FAILED"], "the failure again")
    done = command(platform, "restart", "broken", "out", "--failed", "--json")
    assert json.loads(done.stdout) == [{"name": "broken", "restarted": ["task 0"]}, {"name": "out", "restarted": []}]
    assert command(platform, "restart", "out", "--task", "0").stdout == "out restarted: task 0\n"
    failed = command(platform, "restart", "out", "--task", "7", check=False)
    assert (failed.returncode, failed.stderr) == (1, "error: Unknown task: out-7\n")
    for wrong in (["restart"], ["restart", "out", "--all-failed"], ["restart", "out", "--failed", "--task", "0"]):
        assert command(platform, *wrong, check=False).returncode == 2
    lines = [json.loads(line) for line in command(platform, "logs", "broken", "--json").stdout.splitlines()]
    assert {line["connector"] for line in lines} == {"broken"}
    assert any("Tolerance exceeded" in json.dumps(line) for line in lines)
    command(platform, "delete", "broken")


def write_log(data: Path, *entries: dict[str, Any]) -> None:
    (data / "logs").mkdir(parents=True, exist_ok=True)
    with (data / "logs" / "connect.log").open("a") as log:
        log.writelines(json.dumps({"time": "t", "logger": "l", **entry}) + "\n" for entry in entries)


def test_logs_are_those_of_the_connector_and_task(tmp_path: Path) -> None:
    write_log(tmp_path, *({"connector": "a", "task": n % 2, "event": f"e{n}", "level": "info"} for n in range(9)))
    write_log(tmp_path, {"connector": "b", "event": "other", "level": "info"}, {"event": "none's", "level": "info"})
    write_log(tmp_path, {"connector": "a", "event": "trouble", "level": "warning", "keys": ["k"], "exception": "E: x"})
    with (tmp_path / "logs" / "connect.log").open("a") as log:
        log.write('{"connector": "a"\nprinted\n')

    def events(*arguments: Any) -> list[str]:
        done = tidegate("connectors", "logs", "a", "--json", *arguments, "--data", tmp_path)
        return [json.loads(line)["event"] for line in done.stdout.splitlines()]

    assert events() == [*(f"e{n}" for n in range(9)), "trouble"]
    assert events("-n", "2") == ["e8", "trouble"] and events("--task", "1", "-n", "1") == ["e7"]
    assert events("--level", "warning") == ["trouble"]
    shown = tidegate("connectors", "logs", "a", "-n", "2", "--data", tmp_path).stdout
    assert shown == 't INFO    task 0  e8 [l]\nt WARNING -  trouble keys=["k"] [l]\nE: x\n'


def test_logs_of_a_name_that_nobody_has_are_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, {"connector": "orders", "event": "e", "level": "info"})
    failed = tidegate("connectors", "logs", "ordres", "--data", tmp_path, check=False)
    assert failed.returncode == 1
    assert failed.stderr == "error: there is no connector ordres, and no line of one in the log; did you mean orders?\n"
    done = tidegate("connectors", "logs", "orders", "--level", "error", "--data", tmp_path)
    assert done.stdout == "" and done.stderr.endswith("has no such line of orders\n")


def test_logs_longer_than_a_chunk_are_read_from_their_end(tmp_path: Path) -> None:
    write_log(tmp_path, {"connector": "a", "event": "first", "level": "info"})
    write_log(tmp_path, *({"connector": "b", "event": "x" * 1000, "level": "info"} for _ in range(2500)))
    done = tidegate("connectors", "logs", "a", "--json", "--data", tmp_path)
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["first"]


def test_followed_logs_go_on_with_new_lines(tmp_path: Path) -> None:
    write_log(tmp_path, {"connector": "a", "event": "old", "level": "info"})
    arguments = [sys.executable, "-m", "tidegate.cli", "connectors", "logs", "a", "-f", "--data", str(tmp_path)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as following:
        assert following.stdout is not None
        try:
            assert following.stdout.readline() == "t INFO    -  old [l]\n"
            write_log(tmp_path, {"connector": "b", "event": "other", "level": "info"})
            write_log(tmp_path, {"connector": "a", "event": "new", "level": "info"})
            assert following.stdout.readline() == "t INFO    -  new [l]\n"
            (tmp_path / "logs" / "connect.log").write_text("")
            write_log(tmp_path, {"connector": "a", "event": "anew", "level": "info"})
            assert following.stdout.readline() == "t INFO    -  anew [l]\n"
        finally:
            following.terminate()


def test_logs_of_a_worker_elsewhere_are_said_to_be_there(tmp_path: Path) -> None:
    failed = tidegate("connectors", "logs", "a", "--data", tmp_path, check=False)
    assert failed.returncode == 1 and "The log is on the machine of the worker" in failed.stderr
    environment = {"TIDEGATE_CONTEXTS": str(tmp_path / "contexts.json")}
    tidegate("use", "far", "--connect", "http://kafka:8083", environment=environment)
    failed = tidegate("connectors", "logs", "a", check=False, environment=environment)
    assert failed.stderr.startswith(
        "error: the log of the worker at http://kafka:8083 is a file on its machine: run this"
    )
