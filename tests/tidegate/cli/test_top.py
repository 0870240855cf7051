"""``tidegate top`` and what ``tidegate status`` says of connectors: RUNNING is not all."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.platform import RunningPlatform, running_platform, tidegate, until
from tidegate.cli.options import table_of

SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
DATAGEN = "io.confluent.kafka.connect.datagen.DatagenConnector"

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    """A source that never ends, a sink that leaves every record out, and one that fails at the first."""
    folder = tmp_path_factory.mktemp("top")
    with running_platform(folder, "--without", "events") as started:
        started.create(
            "made",
            connector__class=DATAGEN,
            kafka__topic="made",
            quickstart="users",
            max__interval=50,
            value__converter=JSON,
        )
        started.create(
            "tolerant",
            connector__class=SINK,
            topics="made",
            file=folder / "tolerant.txt",
            errors__tolerance="all",
            errors__deadletterqueue__topic__name="made-dlq",
            errors__deadletterqueue__topic__replication__factor=1,
            value__converter="org.apache.kafka.connect.converters.IntegerConverter",
        )
        path = folder / "failing.json"
        config = {"connector.class": SINK, "topics": "made", "file": str(folder / "x")}
        config["value.converter"] = "org.apache.kafka.connect.converters.IntegerConverter"
        path.write_text(json.dumps(config))
        tidegate("connectors", "apply", path, "--data", started.data)
        yield started


def by_name(told: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in told}


def once(platform: RunningPlatform) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(tidegate("top", "--json", "--data", platform.data).stdout)
    return told


@pytest.fixture
def told(platform: RunningPlatform) -> dict[str, Any]:
    """One document in which the source is under way, the tolerant sink has lost records, and the other has failed."""
    seen: list[dict[str, Any]] = []

    def complete() -> bool:
        seen.append(once(platform))
        known = by_name(seen[-1]["connectors"])
        return (
            {"made", "tolerant", "failing"} == set(known)
            and bool(known["tolerant"]["dead_letters"])
            and known["failing"]["tasks"] == {"FAILED": 1}
            and (known["made"]["rows_per_s"] or 0) > 0
        )

    until(complete, "all three in their states")
    return seen[-1]


def test_json_has_rates_lag_dead_letters_and_memory(told: dict[str, Any]) -> None:
    connectors, components = by_name(told["connectors"]), by_name(told["components"])
    assert connectors["made"]["lag"] is None and connectors["made"]["rows"] > 0
    tolerant = connectors["tolerant"]
    assert tolerant["tasks"] == {"RUNNING": 1} and tolerant["rows"] == 0 and tolerant["lag"] is not None
    assert 0 < tolerant["dead_letters"] <= tolerant["skipped"] <= tolerant["errors"]
    assert tolerant["memory_bytes"] > 1_000_000 and tolerant["last_error_ms"] > 0
    assert "Tolerance exceeded" in connectors["failing"]["error"]
    assert set(components) == {"broker", "registry", "connect"} and told["notes"] == []
    assert components["broker"]["records_per_s"] > 0 and components["registry"]["records_per_s"] is None
    assert all(c["state"] == "ready" and c["memory_bytes"] > 1_000_000 for c in components.values())


def test_once_prints_two_tables(platform: RunningPlatform, told: dict[str, Any]) -> None:
    lines = tidegate("top", "--once", "--data", platform.data).stdout.splitlines()
    heads = [line.split() for line in lines if line.startswith(("connector ", "component "))]
    assert heads[0][:4] == ["connector", "type", "tasks", "rows/s"] and heads[1][0] == "component"
    assert any(line.startswith("failing ") and "1 FAILED" in line for line in lines)


def test_status_names_connectors_that_lose_records_or_failed(platform: RunningPlatform, told: dict[str, Any]) -> None:
    said = tidegate("status", "--data", platform.data).stdout
    assert "connector failing has failed: Tolerance exceeded" in said and "(tidegate connectors show failing)" in said
    (line,) = [line for line in said.splitlines() if line.startswith("connector tolerant has left out")]
    assert line.endswith("of them in its dead letter queue (tidegate dlq show tolerant)")
    assert by_name(platform.status()["connectors"])["tolerant"]["dead_letters"] > 0


def test_a_terminal_shows_it_until_ctrl_c(platform: RunningPlatform) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "tidegate.cli", "top", "--interval", "0.2", "--data", str(platform.data)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "40"}
    with subprocess.Popen(command, stdout=follower, stdin=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        deadline = time.monotonic() + 120
        while shown.count(b"tolerant") < 2:  # the second is a refresh
            assert time.monotonic() < deadline and process.poll() is None, shown
            if select.select([leader], [], [], 1)[0]:
                shown += os.read(leader, 65536)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    os.close(leader)


def test_top_without_a_worker_says_so(tmp_path: Path) -> None:
    failed = tidegate("top", "--once", "--connect", "http://127.0.0.1:9", check=False)
    assert failed.returncode == 1 and failed.stderr.startswith("error: no Connect worker answers at http://127.0.0.1:9")
    failed = tidegate("top", "--data", tmp_path / "none", check=False)
    assert failed.stderr.startswith(f"error: no tidegate is up on {tmp_path}/none")


def test_tasks_of_other_workers_are_asked_there_and_silence_is_told() -> None:
    """Two workers of one group: each knows the counts of its own tasks."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Worker,), {})) for _ in range(2)]
    ids = [f"127.0.0.1:{server.server_port}" for server in servers]
    for number, server in enumerate(servers):
        handler: Any = server.RequestHandlerClass
        handler.number, handler.ids = number, [*ids, "127.0.0.1:9"]
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        told = json.loads(tidegate("top", "--json", "--connect", f"http://{ids[0]}").stdout)
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
    (summary,) = told["connectors"]
    assert (summary["rows"], summary["dead_letters"], summary["lag"]) == (30, 3, 12)
    assert [note.partition(":")[0] for note in told["notes"]] == ["nothing is known of the tasks on 127.0.0.1"]


class _Worker(BaseHTTPRequestHandler):
    number: int
    ids: list[str]

    def do_GET(self) -> None:
        if self.path.startswith("/tidegate/v1/connectors"):
            mine = 10 * (self.number + 1)
            task = {
                "id": self.number,
                "sink-task-metrics": {"sink-record-send-total": mine},
                "task-error-metrics": {"deadletterqueue-produce-requests": self.number + 1},
                "lags": [{"topic": "t", "partition": self.number, "lag": 4 * (self.number + 1)}],
            }
            answer: Any = {"worker_id": self.ids[self.number], "connectors": {"c": [task]}}
        else:
            tasks = [{"id": n, "state": "RUNNING", "worker_id": worker} for n, worker in enumerate(self.ids)]
            connector = {"state": "RUNNING", "worker_id": self.ids[0]}
            answer = {"c": {"status": {"name": "c", "type": "sink", "connector": connector, "tasks": tasks}}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_column_of_numbers_stays_aligned_where_some_are_missing_or_coloured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.console import Console
    from rich.text import Text

    rows = [["a", 1, None], ["bb", 12345, Text("7", style="yellow", justify="right")], ["c", None, None]]
    Console(width=80).print(table_of(["c", "rows", "skipped"], rows))
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines] == [
        "c     rows  skipped",
        "a        1        -",
        "bb  12,345        7",
        "c        -        -",
    ]
