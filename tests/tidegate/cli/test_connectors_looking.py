"""``tidegate connectors list|status|show|topics|help``: what is told of a running connector, and what is kept secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from tests.support.platform import RunningPlatform, running_platform, tidegate, until
from tidegate.cli import tidegate as command_line
from tidegate.clients.counts import error_of

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    """A source of five numbers and one line that is no JSON, and two sinks that read JSON: one keeps what it cannot read in
    a dead letter queue, the other fails.
    """
    folder = tmp_path_factory.mktemp("looking")
    (folder / "lines.txt").write_text("1\n2\n3\n4\n5\nsix\n")
    with running_platform(folder, "--without", "events") as started:
        text = "org.apache.kafka.connect.storage.StringConverter"
        started.create(
            "lines", connector__class=SOURCE, file=folder / "lines.txt", topic="lines", value__converter=text
        )
        reading = {"connector__class": SINK, "topics": "lines", "value__converter": JSON}
        reading |= {"value__converter__schemas__enable": "false"}
        started.create(
            "tolerant",
            **reading,
            file=folder / "out.txt",
            errors__tolerance="all",
            errors__deadletterqueue__topic__name="lines-dlq",
            errors__deadletterqueue__topic__replication__factor=1,
            producer__override__ssl__key__password="hunter22",
        )
        started.create("strict", connector__class=SINK, topics="none-yet", file=folder / "strict.txt")
        yield started


def shown(platform: RunningPlatform, *arguments: Any) -> Any:
    return json.loads(tidegate("connectors", *arguments, "--json", "--data", platform.data).stdout)


def text(platform: RunningPlatform, *arguments: Any) -> str:
    return tidegate("connectors", *arguments, "--data", platform.data).stdout


@pytest.fixture
def left_out(platform: RunningPlatform) -> dict[str, Any]:
    """The answer of ``show`` after the sink has left out the line that is no JSON."""
    until(lambda: shown(platform, "show", "tolerant")["dead_letters"]["records"] == 1, "one dead letter")
    until(lambda: shown(platform, "show", "tolerant")["offsets"], "a committed offset")
    told: dict[str, Any] = shown(platform, "show", "tolerant")
    return told


def test_show_tells_positions_lag_topics_and_dead_letters(platform: RunningPlatform, left_out: dict[str, Any]) -> None:
    assert left_out["dead_letters"] == {"topic": "lines-dlq", "records": 1, "skipped": 1}
    assert (left_out["type"], left_out["class"], left_out["state"]) == ("sink", SINK, "RUNNING")
    assert left_out["offsets"] == [
        {
            "partition": {"kafka_topic": "lines", "kafka_partition": 0},
            "offset": {"kafka_offset": 6},
            "lag": 0,
        }
    ]
    assert left_out["topics"] == ["lines"] and left_out["error"] is None
    (task,) = left_out["tasks"]
    assert (task["counts"]["rows"], task["counts"]["errors"], task["counts"]["lag"]) == (5, 1, 0)
    assert task["counts"]["memory_bytes"] > 1_000_000
    words = text(platform, "show", "tolerant")
    assert "dead letters: 1 since the tasks started, to lines-dlq" in words
    assert "kafka_topic=lines kafka_partition=0  kafka_offset=6" in words


def test_a_source_has_positions_and_no_lag(platform: RunningPlatform) -> None:
    until(lambda: shown(platform, "show", "lines")["offsets"], "a committed offset")
    told = shown(platform, "show", "lines")
    assert [(o["offset"], o["lag"]) for o in told["offsets"]] == [({"position": 14}, None)]
    assert told["tasks"][0]["counts"]["rows"] == 6 and told["tasks"][0]["counts"]["lag"] is None


def test_the_rows_that_a_source_cannot_read_are_counted(platform: RunningPlatform, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id\n1\nx\n3\n")
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    platform.create(
        "rows",
        connector__class="FileSource",
        input__path=tmp_path.as_uri(),
        input__file__pattern="rows.csv",
        topic="rows",
        input__format="csv",
        value__schema=json.dumps(schema),
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="bad-rows",
    )
    until(lambda: shown(platform, "show", "rows")["tasks"][0]["counts"]["rows"] == 3, "two rows and a dead letter")
    assert shown(platform, "show", "rows")["dead_letters"] == {"topic": "bad-rows", "records": 1, "skipped": 1}
    tidegate("connectors", "delete", "rows", "--data", platform.data)


def test_secrets_are_not_shown(platform: RunningPlatform, tmp_path: Path) -> None:
    told = shown(platform, "show", "tolerant")
    assert told["config"]["producer.override.ssl.key.password"] == "[hidden]"
    assert "hunter22" not in text(platform, "show", "tolerant")


def test_passwords_that_only_their_class_declares_are_hidden() -> None:
    from tidegate.clients.worker import masked_config

    class Worker:
        def call(self, method: str, path: str) -> Any:
            kinds = {"/connector-plugins/X/config": "STRING", "/connector-plugins/T/config": "PASSWORD"}
            return [{"name": "salt", "type": kinds[path]}]

    config = {"connector.class": "X", "salt": "sea", "transforms": "t", "transforms.t.type": "T"}
    config |= {"transforms.t.salt": "pepper", "a.password": "${file:/x:y}", "b.password": "pepper"}
    hidden = masked_config(Worker(), config)  # type: ignore[arg-type]
    assert hidden == {**config, "transforms.t.salt": "[hidden]", "b.password": "[hidden]"}


def test_running_is_not_all_that_status_and_list_say(platform: RunningPlatform, left_out: dict[str, Any]) -> None:
    status = shown(platform, "status", "tolerant")
    assert status["tasks"][0]["state"] == "RUNNING" and status["tasks"][0]["counts"]["dead_letters"] == 1
    said = tidegate("connectors", "status", "tolerant", "--data", platform.data)
    assert "left out since the tasks started: 1 record; 1 of them in its dead letter queue lines-dlq" in said.stderr
    assert shown(platform, "list")["tolerant"]["status"]["tasks"][0]["counts"]["skipped"] == 1
    (row,) = [line for line in text(platform, "list").splitlines() if line.startswith("tolerant")]
    assert row.split() == ["tolerant", "sink", "RUNNING", "1", "RUNNING", "1", "1"]


def test_show_says_why_a_task_failed(platform: RunningPlatform, tmp_path: Path) -> None:
    path = tmp_path / "failing.json"
    config = {"connector.class": SINK, "topics": "lines", "file": str(tmp_path / "out"), "value.converter": JSON}
    path.write_text(json.dumps(config))
    tidegate("connectors", "apply", path, "--data", platform.data)
    until(lambda: shown(platform, "show", "failing")["error"] is not None, "the failure")
    error = shown(platform, "show", "failing")["error"]
    assert error["part"] == "task 0" and error["message"].startswith(
        "Tolerance exceeded in error handler: connector fail"
    )
    assert f"last error (task 0): {error['message']}" in text(platform, "show", "failing")
    tidegate("connectors", "delete", "failing", "--data", platform.data)


def test_the_message_of_a_java_trace_is_its_innermost_cause() -> None:
    java = (
        "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n"
        "\tat org.apache.kafka.connect.runtime.X.y(X.java:1)\n"
        "Caused by: java.sql.SQLException: ERROR: relation is missing\n  Position: 15\n\tat org.Z.a(Z.java:2)\n\t... 3 more\n"
    )
    assert error_of(java) == "ERROR: relation is missing\n  Position: 15"
    assert error_of("ToleranceExceeded: task 0: bad\nCaused by: DataError: bad") == "task 0: bad"
    assert error_of("  ") == ""


def test_topics_of_a_connector(platform: RunningPlatform) -> None:
    until(lambda: text(platform, "topics", "lines") == "lines\n", "the topic")
    assert shown(platform, "topics", "lines") == {"name": "lines", "topics": ["lines"]}
    failed = tidegate("connectors", "topics", "nope", "--data", platform.data, check=False)
    assert (failed.returncode, failed.stderr) == (1, "error: Connector nope not found\n")


def test_keys_of_a_class_by_any_of_its_names(platform: RunningPlatform) -> None:
    keys = {key["name"]: key for key in shown(platform, "help", "JdbcSink")}
    assert keys == {key["name"]: key for key in shown(platform, "help", "io.confluent.connect.jdbc.JdbcSinkConnector")}
    assert keys["connection.password"]["type"] == "PASSWORD"
    words = text(platform, "help", "JdbcSink", "--match", "pk.mode")
    assert "\nData mapping\n  pk.mode  string, default none\n      Where the primary key comes from" in words
    assert "connection.url" not in words and "connection.url" in text(platform, "help", "JdbcSink")
    failed = tidegate("connectors", "help", "FileStreamSnk", "--data", platform.data, check=False)
    assert failed.returncode == 1 and failed.stderr == (
        f"error: the worker has no class FileStreamSnk; did you mean {SINK}? "
        "(`tidegate connectors plugins` lists all)\n"
    )


def test_the_shell_completes_names_of_connectors_and_classes(
    platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_DATA", str(platform.data))

    def completed(*words: str) -> list[str]:
        shell = ShellComplete(command_line, {}, "tidegate", "_TIDEGATE_COMPLETE")
        return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]

    assert completed("connectors", "show", "t") == completed("dlq", "show", "t") == ["tolerant"]
    assert completed("connectors", "pause", "lines", "") == ["strict", "tolerant"]
    assert "JdbcSinkConnector" in completed("connectors", "help", "JdbcS")
    monkeypatch.setenv("TIDEGATE_DATA", "/nowhere")
    assert completed("connectors", "show", "") == []


def test_the_progress_of_a_snapshot_is_shown(platform: RunningPlatform, tmp_path: Path) -> None:
    import sqlite3
    from urllib.request import urlopen

    with sqlite3.connect(tmp_path / "shop.db") as database:
        for name in ("orders", "customers"):
            database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
            database.execute(f"INSERT INTO {name} VALUES (1), (2), (3)")
    path = tmp_path / "shop.json"
    config = {"connector.class": "tidegate.sqlite.SqliteCdcSourceConnector", "database.path": str(tmp_path / "shop.db")}
    path.write_text(json.dumps({**config, "topic.prefix": "lookedat"}))
    tidegate("connectors", "apply", path, "--wait", "--data", platform.data)

    def parts() -> Any:
        tasks = shown(platform, "status", "shop")["tasks"]
        return [(p["name"], p["state"], p["done"]) for t in tasks for p in (t["progress"] or {}).get("parts", ())]

    until(lambda: parts() == [("main.customers", "read", 3), ("main.orders", "read", 3)], "both tables to be read")
    url = platform.addresses["connect"] + "/metrics"
    text = urlopen(url).read().decode()
    assert 'tidegate_connect_task_progress_part_done{connector="shop",part="main.orders",task="0"} 3.0' in text


def test_an_unfinished_snapshot_is_told_with_its_tables() -> None:
    from connectors.debezium.snapshot_progress import SnapshotProgress
    from tidegate.cli.connectors.progress import is_unfinished, part_rows, summary_of

    progress = SnapshotProgress({"public.b": 4000, "public.c": 6000}, ["public.a"])
    progress.delivered("public.b", 1000)
    told = progress.told()
    assert is_unfinished(told)
    assert summary_of(told).startswith("snapshot: 1 of 3 tables, 1,000 of about 10,000 rows, ")
    rows = [row[:5] for row in part_rows(told)]
    assert rows == [
        ["public.a", "read before", None, None, None],
        ["public.b", "reading", 1000, 4000, "25 %"],
        ["public.c", "waiting", 0, 6000, "0 %"],
    ]
    progress.ended("public.b")
    progress.delivered("public.c", 9000)  # more than was estimated
    assert progress.told()["parts"][2]["percent"] == 99.0 and is_unfinished(progress.told())
    progress.ended("public.c")
    assert not is_unfinished(progress.told()) and progress.told()["total"] == 10_000


def test_a_sink_whose_topic_does_not_exist_says_so_and_does_not_create_it(platform: RunningPlatform) -> None:
    until(lambda: shown(platform, "status", "strict")["tasks"][0]["counts"]["missing_topics"], "the missing topic")
    said = tidegate("connectors", "status", "strict", "--data", platform.data).stderr
    assert "strict waits for topics that do not exist: none-yet" in said
    assert (
        "strict waits for topics that do not exist: none-yet"
        in tidegate("connectors", "list", "--data", platform.data).stderr
    )
    file = platform.data / "strict.json"
    file.write_text(json.dumps({"name": "strict", "config": shown(platform, "show", "strict")["config"]}))
    applied = tidegate("connectors", "apply", file, "--wait", "--data", platform.data)
    assert "strict waits for topics that do not exist: none-yet" in applied.stderr
    assert "waits for topics" not in tidegate("connectors", "status", "tolerant", "--data", platform.data).stderr
    log = platform.data / "logs" / "connect.log"
    until(lambda: "the sink waits for topics that do not exist" in log.read_text(), "a line in the log")
