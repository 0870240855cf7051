"""The lineage of what ran: from a table to a topic to a table, to the column; told by REST and to OpenLineage."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from openlineage.client import OpenLineageClient

from connect.api import Dataset, Record, RecordBatch, Schema, SchemaType, SourceTask
from connect.config.connector import LineageConfig
from connect.task.lifecycle import TaskState
from connect.task.lineage import Flow, FlowObserver, Flows
from connect.task.open_lineage import OpenLineageEvents
from connect.transforms.chain import TransformChain
from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker
from tidegate.kit.config import parse

UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
REPLACE = "org.apache.kafka.connect.transforms.ReplaceField$Value"
ROUTE = "org.apache.kafka.connect.transforms.RegexRouter"


@pytest.fixture
def worker(tidegate_broker, tmp_path):
    made = ConnectWorker(tmp_path / "worker", tidegate_broker.bootstrap_servers, name=f"w{uuid.uuid4().hex[:8]}")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def collector() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Takes the events of OpenLineage's own client; its URL, and what came."""
    events: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            events.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", events
    server.shutdown()
    server.server_close()


def shop(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table orders (id integer primary key, email text, amount real)")
        database.execute("insert into orders values (1, 'a@b.example', 2.5)")


def flows(worker: ConnectWorker, name: str = "") -> list[dict[str, Any]]:
    path = f"/tidegate/v1/connectors/{name}/lineage" if name else "/tidegate/v1/lineage"
    listed: list[dict[str, Any]] = worker.ask("GET", path, expect=200)["flows"]
    return listed


def test_from_table_to_topic_to_table(worker, collector, tmp_path, tidegate_broker):
    name, (url, events) = f"t{uuid.uuid4().hex[:8]}", collector
    shop(tmp_path / "shop.db")
    sqlite3.connect(tmp_path / "copy.db").close()
    (tmp_path / "ol.yml").write_text(f"transport: {{type: http, url: '{url}'}}\n")
    json_ = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true"}
    source = {
        "connector.class": "SqliteCdcSource",
        "database.path": str(tmp_path / "shop.db"),
        "topic.prefix": name,
        "transforms": "unwrap,rename,route",
        "transforms.unwrap.type": UNWRAP,
        "transforms.rename.type": REPLACE,
        "transforms.rename.renames": "amount:total",
        "transforms.route.type": ROUTE,
        "transforms.route.regex": ".*orders",
        "transforms.route.replacement": f"{name}-orders",
        "openlineage.integration.enabled": "true",
        "openlineage.integration.config.file.path": str(tmp_path / "ol.yml"),
        "openlineage.integration.job.owners": "team=shop",
        **json_,
    }
    sink = {
        "connector.class": "JdbcSink",
        "topics": f"{name}-orders",
        "connection.url": f"jdbc:sqlite:{tmp_path / 'copy.db'}",
        "table.name.format": "orders_copy",
        "auto.create": "true",
        "pk.mode": "none",
        "transforms": "drop",
        "transforms.drop.type": REPLACE,
        "transforms.drop.exclude": "email",
        **json_,
    }
    worker.ask("POST", "/connectors", {"name": f"{name}-in", "config": source}, expect=201)
    worker.ask("POST", "/connectors", {"name": f"{name}-out", "config": sink}, expect=201)
    try:
        wait_until(lambda: len(flows(worker)) == 2, "both flows", 60)
    except TimeoutError:
        pytest.fail(json.dumps([flows(worker), worker.ask("GET", f"/connectors/{name}-in/status")], indent=1))
    told = {flow["connector"]: flow for flow in flows(worker)}
    inside, outside = told[f"{name}-in"], told[f"{name}-out"]
    assert inside["topic"] == outside["topic"] == f"{name}-orders"
    assert inside["type"] == "source" and inside["dataset"] == {
        "namespace": f"sqlite://{tmp_path / 'shop.db'}",
        "name": "orders",
    }
    assert inside["columns"] == [["id", "id"], ["email", "email"], ["amount", "total"]]
    assert outside["dataset"] == {"namespace": f"sqlite://{tmp_path / 'copy.db'}", "name": "orders_copy"}
    assert outside["columns"] == [["id", "id"], ["total", "total"]], "the dropped field goes nowhere"

    wait_until(lambda: len(events) == 2, "START and RUNNING")
    start, running = events
    assert (start["eventType"], running["eventType"]) == ("START", "RUNNING")
    assert start["run"]["runId"] == running["run"]["runId"]
    assert running["job"] | {"facets": {}} == {"namespace": name, "name": f"{name}.0", "facets": {}}
    assert running["job"]["facets"]["ownership"]["owners"] == [{"name": "shop", "type": "team"}]
    (given,), (made,) = running["inputs"], running["outputs"]
    assert (given["namespace"], given["name"]) == tuple(inside["dataset"].values())
    kafka = f"kafka://{tidegate_broker.bootstrap_servers}"
    assert (made["namespace"], made["name"]) == (kafka, f"{name}-orders")
    fields = made["facets"]["columnLineage"]["fields"]
    assert fields["total"]["inputFields"][0]["field"] == "amount"
    assert [f["name"] for f in made["facets"]["schema"]["fields"]] == ["id", "email", "total"]

    worker.ask("PUT", f"/connectors/{name}-in/stop")
    wait_until(lambda: events[-1]["eventType"] == "COMPLETE", "COMPLETE")
    assert events[-1]["outputs"] == running["outputs"]

    worker.stop()  # what ran is known after a restart, and goes with its connector
    worker.start()
    assert flows(worker, f"{name}-in") == [inside]
    worker.ask("DELETE", f"/connectors/{name}-out", expect=204)
    wait_until(lambda: [flow["connector"] for flow in flows(worker)] == [f"{name}-in"], "the flow gone")


def test_a_server_that_does_not_answer_holds_no_task_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        client = OpenLineageClient(
            config={"transport": {"type": "http", "url": f"http://127.0.0.1:{silent.getsockname()[1]}"}}
        )
        about = {"job": "a.0", "namespace": "a", "kafka": "kafka://a:1", "is_source": True}
        events = OpenLineageEvents(parse(LineageConfig, {}), client, **about)
        events.on_state(TaskState.RUNNING, None)
        for number in range(2000):  # more than may wait
            events.on_flow(Flow(f"t{number}", None, None))
        events.on_state(TaskState.STOPPED, None)
        assert events._thread.is_alive(), "the end of the task waits for the server"
    events._thread.join(60)
    assert not events._thread.is_alive(), "the thread stays"


def test_columns_of_several_schemas_are_united():
    def batch(*names: str) -> RecordBatch:
        schema = Schema.struct(dict.fromkeys(names, Schema(SchemaType.STRING)))
        return RecordBatch.from_records([Record("orders", dict.fromkeys(names, "x"), schema)])

    class Shop(SourceTask[Any]):
        def poll(self) -> list[RecordBatch]:
            return []

        def dataset(self, topic: str) -> Dataset:
            return Dataset("sqlite:///shop.db", topic)

    told: list[Flow] = []
    observer = FlowObserver(Flows(Shop(None, None), told.append), TransformChain(), is_source=True)
    for names in (("id",), ("id", "city"), ("id",), ("city",)):  # an old partition is read after a new one
        observer.saw(batch(*names), batch(*names))
    assert [flow.columns for flow in told] == [(("id", "id"),), (("id", "id"), ("city", "city"))]


@pytest.mark.parametrize(
    ("location", "dataset"),
    [
        ("s3a://key:secret@bucket/a/b", ("s3://bucket", "a/b")),
        ("hdfs://name:8020/topics", ("hdfs://name:8020", "topics")),
        ("file:///var/lib/x", ("file", "/var/lib/x")),
        ("/var/lib/x", ("file", "/var/lib/x")),
        ("https://user:pw@host:1/path?secret=1", ("https://host:1", "path")),
        ("gs://bucket", ("gs://bucket", "/")),
    ],
)
def test_locations_have_no_credentials(location, dataset):
    assert Dataset.of_location(location) == dataset
