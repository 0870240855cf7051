"""The Spark driver against a real broker and real Spark in local mode."""

import io
import json
import struct
import tempfile
import threading
import uuid
from contextlib import suppress
from pathlib import Path

import fastavro
import psutil
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.api import ConnectError, RetriableConnectError
from connectors.spark.client import SparkDriver
from connectors.spark.driver import Input, Job
from tests.servers.process import free_ports
from tests.support.platform import until

pytestmark = [pytest.mark.servers, pytest.mark.proof]  # half a minute to start; every day a page runs a job of Spark

OLD = {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}, {"name": "month", "type": "int"}]}
NEW = OLD | {"fields": [*OLD["fields"], {"name": "carrier", "type": ["null", "string"], "default": None}]}
CARRIER = {
    "type": "record",
    "name": "Carrier",
    "fields": [{"name": "code", "type": "string"}, {"name": "name", "type": "string"}],
}


def framed(schema_id, schema, value):
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, value)
    return b"\x00" + struct.pack(">I", schema_id) + body.getvalue()


def fill(bootstrap, topic, values, partitions=2):
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept until its future is done
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for n, value in enumerate(values):
        producer.produce(topic, value, partition=n % partitions)
    assert producer.flush(60) == 0


def make_job(bootstrap, inputs, path, **changes):
    job = {
        "run_id": "abc",
        "name": "test",
        "inputs": inputs,
        "sql": None,
        "path": str(path),
        "format": "parquet",
        "partition_by": [],
        "files": 0,
        "metadata_columns": False,
        "master": "local[2]",
        "jars": [],
        "conf": {},
        "kafka": {"bootstrap.servers": bootstrap},
    }
    return Job(**(job | changes))


@pytest.fixture(scope="module")
def driver():
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    yield driver
    driver.close()


def run(driver, job):
    said = []
    return driver.run(job, said.append), said


@pytest.fixture(scope="module")
def flights(apache_kafka):
    topic, carriers = f"flights-{uuid.uuid4().hex[:6]}", f"carriers_{uuid.uuid4().hex[:6]}"
    old = [framed(7, OLD, {"id": n, "month": n % 3 + 1}) for n in range(100)]
    new = [framed(9, NEW, {"id": n, "month": n % 3 + 1, "carrier": "AA"}) for n in range(100, 200)]
    fill(apache_kafka.bootstrap_servers, topic, [*old, *new])
    fill(apache_kafka.bootstrap_servers, carriers, [framed(3, CARRIER, {"code": "AA", "name": "American"})], 1)
    schemas = [(7, json.dumps(OLD)), (9, json.dumps(NEW))]
    return (
        Input(topic, {"0": 0, "1": 0}, {"0": 100, "1": 100}, "avro", None, schemas),
        Input(carriers, {"0": 0}, {"0": 1}, "avro", None, [(3, json.dumps(CARRIER))]),
    )


def test_both_writer_schemas_arrive_in_partitioned_parquet_and_a_second_run_replaces_the_first(
    driver, apache_kafka, flights, tmp_path
):
    job = make_job(apache_kafka.bootstrap_servers, [flights[0]], tmp_path / "out", partition_by=["month"])
    done, said = run(driver, job)
    assert done["rows"] == {flights[0].topic: 200}
    run(driver, job)
    table = ds.dataset(tmp_path / "out", partitioning="hive", format="parquet").to_table()
    assert sorted(table["id"].to_pylist()) == list(range(200))
    assert table["carrier"].to_pylist().count("AA") == 100
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_dir()) == ["month=1", "month=2", "month=3"]


def test_sql_joins_a_lookup_topic(driver, apache_kafka, flights, tmp_path):
    views = [given.view for given in flights]
    sql = f"SELECT c.name, count(*) AS n FROM {views[0]} f JOIN {views[1]} c ON f.carrier = c.code GROUP BY c.name"
    run(driver, make_job(apache_kafka.bootstrap_servers, list(flights), tmp_path / "out", sql=sql))
    assert ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist() == [{"name": "American", "n": 100}]


def test_an_unknown_schema_id_fails_the_job_and_names_the_record(driver, apache_kafka, flights, tmp_path):
    known = Input(**(vars(flights[0]) | {"writer_schemas": [flights[0].writer_schemas[0]]}))
    with pytest.raises(ConnectError, match=r"offset \d+: schema id 9 is not among"):
        run(driver, make_job(apache_kafka.bootstrap_servers, [known], tmp_path / "out"))
    assert not list((tmp_path / "out").glob("part-*"))


@pytest.mark.parametrize("away", ["kafka", "hdfs"])
def test_a_server_that_is_away_is_a_failure_that_passes(apache_kafka, flights, tmp_path, away):
    (port,) = free_ports(1)
    kafka = {"bootstrap.servers": apache_kafka.bootstrap_servers}
    given = {"path": f"hdfs://127.0.0.1:{port}/out"}
    if away == "kafka":
        kafka = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "default.api.timeout.ms": "3000",
            "request.timeout.ms": "2000",
        }
        given = {"path": str(tmp_path / "out")}
    conf = {"spark.hadoop.ipc.client.connect.max.retries": "1", "spark.hadoop.ipc.client.connect.retry.interval": "100"}
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    with pytest.raises(RetriableConnectError, match="the Spark job failed"):
        run(driver, make_job("-", [flights[0]], **given, kafka=kafka, conf=conf))
    driver.close()


def test_a_job_is_cancelled_soon_after_it_is_asked_to_stop(apache_kafka, flights, tmp_path):
    stopping = threading.Event()
    driver = SparkDriver(stopping=stopping, idle_s=60)
    with pytest.raises(ConnectError, match="cancelled"):
        driver.run(
            make_job(apache_kafka.bootstrap_servers, [flights[0]], tmp_path / "out"), lambda said: stopping.set()
        )
    assert not list((tmp_path / "out").glob("part-*"))


def test_a_driver_that_is_cancelled_while_its_jvm_starts_leaves_no_files(apache_kafka, flights, tmp_path, monkeypatch):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    stopping, ended = threading.Event(), threading.Event()
    driver = SparkDriver(stopping=stopping, idle_s=60)

    def stop_at_the_jvm():
        while not ended.wait(0.01):
            with suppress(psutil.Error):
                process = driver._process
                if process is not None and psutil.Process(process.pid).children():
                    stopping.set()
                    return

    watcher = threading.Thread(target=stop_at_the_jvm)
    watcher.start()
    try:
        with pytest.raises(ConnectError, match="cancelled"):
            driver.run(make_job(apache_kafka.bootstrap_servers, [flights[0]], tmp_path / "out"), lambda said: None)
    finally:
        ended.set()
        watcher.join()
    assert list(temporary.iterdir()) == []


def test_what_a_session_is_configured_with_is_in_no_command_line_and_an_idle_driver_ends(
    apache_kafka, flights, tmp_path
):
    secret, tricky = "s3cret-of-the-store", " a=b:c#d!e\\t\tg ü"
    conf = {
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.tidegate.tricky": tricky,
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    sql = f"SELECT current_timezone() AS zone, '${{spark.tidegate.tricky}}' AS tricky, count(*) AS n FROM {flights[0].view}"
    seen, modes = [], set()

    def look(_):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                seen.append((process.name(), " ".join([*process.cmdline(), *process.environ().values()])))

        with suppress(AttributeError):  # no folder before the driver
            folder = Path(driver._folder.name) / "conf"
            modes.update(
                path.stat().st_mode & 0o077 for path in (folder, folder / "spark-defaults.conf") if path.exists()
            )

    driver = SparkDriver(stopping=threading.Event(), idle_s=0.0)
    job = make_job(apache_kafka.bootstrap_servers, [flights[0]], tmp_path / "out", conf=conf, sql=sql)
    driver.run(job, look)
    until(lambda: driver._process is None, "the driver gone")
    assert modes == {0}
    assert "java" in {name for name, _ in seen}
    assert [line for _, line in seen if secret in line] == []
    (row,) = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    assert (row["zone"], row["n"]) == ("Asia/Tokyo", 200)
    assert row["tricky"] == tricky.strip().replace("\\t", "\t"), "a literal of SQL reads its escapes"
