"""``tidegate connectors``: several files at once, misspelt keys, and the messages at the end of commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.platform import RunningPlatform, running_platform, tidegate

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    with running_platform(tmp_path_factory.mktemp("connectors"), "--without", "events") as started:
        yield started


def write(folder: Path, name: str, **config: Any) -> Path:
    keys = {"connector.class": SOURCE, "topic": name, "file": str(folder / "lines.txt")}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": {**keys, **config}}))
    return path


def connectors(platform: RunningPlatform) -> list[str]:
    return sorted(json.loads(tidegate("connectors", "list", "--json", "--data", platform.data).stdout))


def test_nothing_is_applied_where_one_file_is_wrong(platform: RunningPlatform, tmp_path: Path) -> None:
    good, wrong = write(tmp_path, "good"), write(tmp_path, "wrong", **{"tasks.max": "many"})
    failed = tidegate("connectors", "apply", good, wrong, "--data", platform.data, check=False)
    assert failed.returncode == 1 and failed.stderr.startswith("error: nothing was applied:\n")
    assert f"{wrong}: tasks.max: Invalid value many for configuration tasks.max" in failed.stderr
    assert "good" not in connectors(platform)


def test_two_files_with_one_name_are_refused(platform: RunningPlatform, tmp_path: Path) -> None:
    first, second = write(tmp_path, "twice"), tmp_path / "second.json"
    second.write_text(first.read_text())
    failed = tidegate("connectors", "apply", first, second, "--data", platform.data, check=False)
    assert failed.stderr == f"error: {first} and {second} both hold a connector twice: give one of them\n"


def test_a_misspelt_key_stops_apply_unless_it_is_forced(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\n")
    file = write(tmp_path, "typo", **{"batch.szie": "10"})
    failed = tidegate("connectors", "apply", file, "--data", platform.data, check=False)
    assert failed.returncode == 1 and "typo" not in connectors(platform)
    assert (
        f"{file}: nobody knows the key batch.szie; is batch.size meant? (--force applies it as it is)" in failed.stderr
    )
    done = tidegate("connectors", "apply", file, "--force", "--data", platform.data)
    assert done.stdout == "typo created\n" and done.stderr == f"{file}: nobody knows the key batch.szie\n"
    assert tidegate("connectors", "delete", "typo", "--data", platform.data).stdout == "typo deleted\n"


def test_apply_waits_until_the_tasks_run_or_says_why_one_failed(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\n")
    done = tidegate("connectors", "apply", write(tmp_path, "waited"), "--wait", "--data", platform.data)
    assert done.stdout == "waited created\nwaited runs, 1 task\n"
    again = tidegate("connectors", "apply", write(tmp_path, "waited"), "--wait", "--data", platform.data)
    assert again.stdout == "waited unchanged\nwaited runs, 1 task\n"
    more = write(tmp_path, "waited", **{"batch.size": 7})
    assert tidegate("connectors", "apply", more, "--data", platform.data).stdout == "waited updated\n"
    (tmp_path / "lines.txt").unlink()
    (tmp_path / "lines.txt").symlink_to("lines.txt")
    failed = tidegate("connectors", "apply", write(tmp_path, "failing"), "--wait", "--data", platform.data, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: failing failed:\n") and "Too many levels of symbolic links" in failed.stderr
    (tmp_path / "lines.txt").unlink()
    (tmp_path / "lines.txt").write_text("a\n")
    mended = write(tmp_path, "failing", **{"batch.size": 9})
    repaired = tidegate("connectors", "apply", mended, "--wait", "--data", platform.data)
    assert repaired.stdout == "failing updated\nfailing runs, 1 task\n"


def test_commands_say_what_they_have_done(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\n")
    tidegate("connectors", "apply", write(tmp_path, "told"), "--wait", "--data", platform.data)
    for verb, done in (
        ("pause", "paused"),
        ("resume", "resumed"),
        ("restart", "restarted"),
        ("stop", "stopped"),
    ):
        assert tidegate("connectors", verb, "told", "--data", platform.data).stdout == f"told {done}\n"
    answer = json.loads(tidegate("connectors", "delete", "told", "--json", "--data", platform.data).stdout)
    assert answer == [{"name": "told", "action": "deleted"}]


def test_consume_waits_for_a_topic_and_takes_none_of_its_records(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\n")
    tidegate("connectors", "apply", write(tmp_path, "late"), "--data", platform.data)
    shown = tidegate("consume", "late", "--from-beginning", "-n", "1", "--data", platform.data)
    assert json.loads(shown.stdout)["value"] == "a"
    assert tidegate("consume", "late", "--from-beginning", "-n", "0", "--data", platform.data).stdout == ""
    missing = tidegate("consume", "missing", "--to-end", "--data", platform.data, check=False)
    assert missing.returncode == 1 and "no such topic" in missing.stderr


def test_a_misspelt_member_beside_config_is_named(tmp_path):
    (tmp_path / "a.json").write_text('{"nme": "bad", "config": {"connector.class": "FileStreamSource"}}')
    failed = tidegate("connectors", "apply", tmp_path / "a.json", "--connect", "http://127.0.0.1:9", check=False)
    assert (
        failed.returncode == 1
        and "unknown member 'nme' beside config; there are config, initial_state, name" in failed.stderr
    )


def test_a_worker_previews_what_a_connector_would_do(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\n")
    url = f"{platform.addresses['connect']}/tidegate/v1/connector-plugins"
    config = json.loads(write(tmp_path, "looked.at").read_text())["config"]

    def ask(plugin: str, config: dict[str, str], rows: str = "1") -> Any:
        return requests.put(f"{url}/{plugin}/config/preview?rows={rows}", json=config, timeout=90)

    told = ask("FileStreamSource", config).json()
    assert [record["value"] for record in told["records"]] == ["a"] and told["left_out"] == told["actions"] == []
    assert [(s["subject"], s["id"]) for s in told["schemas"]] == [("looked.at-value", None)]
    assert "looked.at" not in connectors(platform)
    for plugin, changes, rows, status, words in (
        ("FileStreamSource", {}, "0", 400, "rows is '0': give a number from 1 to 100"),
        ("FileStreamSink", {}, "1", 400, "does not match request type FileStreamSink"),
        ("FileStreamSource", {"batch.size": "many"}, "1", 400, "batch.size"),
    ):
        answer = ask(plugin, config | changes, rows)
        assert (answer.status_code, words in answer.json()["message"]) == (status, True), answer.text
