"""Built-in sinks that are stopped while their target does not respond: committed records have arrived."""

from __future__ import annotations

import sqlite3
import threading
import uuid

import pytest
import requests

from connect.testing.forwarder import Forwarder
from tests.servers.process import wait_until
from tests.support.buckets import bucket_on
from tests.support.worker import ConnectWorker

pytestmark = pytest.mark.proof

JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true"}
"""With schemas, which a sink of rows needs."""


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    settings = {"task.host.processes": "1", "task.shutdown.graceful.timeout.ms": "6000"}
    made = ConnectWorker(
        tmp_path_factory.mktemp("edges"), tidegate_broker.bootstrap_servers, settings, name=f"w{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
def name():
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("longer_s", [3, pytest.param(None, marks=pytest.mark.long)])
def test_a_sink_to_s3_that_is_stopped_during_an_upload_commits_what_is_in_objects(worker, name, s3_server, longer_s):
    """An upload took 3.5 s and the stop came: rows of open files were thrown away, and their offsets committed."""
    sink, full = f"{name}-s3", f"{name}-full"
    worker.fill(name, 15, **JSON)
    with bucket_on(s3_server) as bucket, Forwarder.to(int(s3_server.endpoint_url.rpartition(":")[2])) as road:
        config = {
            **bucket.access,
            "store.url": f"http://127.0.0.1:{road.port}",
            "topics": f"{name},{full}",
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
            **JSON,
            "flush.size": "20",
        }

        def rows(topic):
            lines = [
                line for path, text in bucket.objects().items() if f"/{topic}/" in path for line in text.splitlines()
            ]
            return len(lines)

        worker.create(sink, connector_class="io.confluent.connect.s3.S3SinkConnector", **config)
        wait_until(lambda: records_read(worker, sink) == 15, "rows in a file that is open")
        road.hold()
        worker.fill(full, 20, **JSON)
        assert road.held.wait(120), "the upload of another file"
        if longer_s is not None:  # within the time that the task has
            threading.Timer(longer_s, road.release).start()
        worker.ask("PUT", f"/connectors/{sink}/stop", expect=204)
        wait_until(lambda: worker.state(sink)["connector"] == "STOPPED", "the end")
        road.release()
        assert all(offset <= rows(topic) for topic, offset in worker.committed(sink).items())
        worker.fill(name, 5, source="more", **JSON)
        worker.ask("PUT", f"/connectors/{sink}/resume", expect=202)
        wait_until(lambda: worker.committed(sink) == {name: 20, full: 20}, "two objects of 20")
        assert rows(name) == rows(full) == 20


def records_read(worker, sink):
    """The number of records that the sink's task has received."""
    for line in requests.get(f"{worker.url}/metrics", timeout=60).text.splitlines():
        if "sink_record_send_total" in line and f'"{sink}"' in line:
            return float(line.rpartition(" ")[2])
    return 0


def test_a_jdbc_sink_that_is_stopped_while_its_database_is_away_commits_what_is_in_the_table(worker, name, tmp_path):
    """Once, records that were put but could not be written were forgotten, and the last commit was after them."""
    file, sink = tmp_path / "target.db", f"{name}-jdbc"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE rows (n INTEGER)")
    database.close()
    config = {
        "topics": name,
        "connection.url": f"jdbc:sqlite:{file}",
        "table.name.format": "rows",
        "fields.whitelist": "n",
        **JSON,
        "max.retries": "0",
        "connection.attempts": "1",
    }

    def rows():
        database = sqlite3.connect(file)
        try:
            return sorted(n for (n,) in database.execute("SELECT n FROM rows"))
        finally:
            database.close()

    worker.fill(name, 30, **JSON)
    worker.create(sink, connector_class="io.confluent.connect.jdbc.JdbcSinkConnector", **config)
    wait_until(lambda: worker.committed(sink) == {name: 30}, "the first rows")
    busy = sqlite3.connect(file, isolation_level=None)
    busy.execute("BEGIN EXCLUSIVE")
    worker.fill(name, 30, source="more", **JSON)
    worker.ask("PUT", f"/connectors/{sink}/stop", expect=204)
    wait_until(lambda: worker.state(sink)["connector"] == "STOPPED", "the end")
    assert worker.committed(sink) == {name: 30}
    busy.execute("ROLLBACK")
    busy.close()
    worker.ask("PUT", f"/connectors/{sink}/resume", expect=202)
    wait_until(lambda: worker.committed(sink) == {name: 60}, "all rows")
    worker.ask("PUT", f"/connectors/{sink}/stop", expect=204)
    wait_until(lambda: worker.state(sink)["connector"] == "STOPPED", "the end")
    assert sorted({*rows()}) == list(range(30)) and len(rows()) >= 60
