"""The Spark driver against a real broker and real Spark in local mode."""

import dataclasses
import io
import json
import os
import shlex
import struct
import subprocess
import tempfile
import threading
import uuid
from contextlib import suppress
from pathlib import Path

import fastavro
import psutil
import pyarrow.dataset as ds
import pyspark
import pytest

from connect.api import ConnectError, RetriableConnectError
from connectors.spark.class_archive import archive_options
from connectors.spark.client import SparkDriver
from connectors.spark.jars import PACKAGES
from connectors.spark.java import find_java
from connectors.spark.job import Input
from registry.client import RegistryClient
from tests.servers.process import free_ports
from tests.support.platform import until
from tests.support.registry import RegistryThread
from tests.support.spark import fill, make_job

pytestmark = [pytest.mark.servers, pytest.mark.proof]  # half a minute to start; every day a page runs a job of Spark

OLD = {"type": "record", "name": "Flight", "fields": [{"name": "id", "type": "long"}, {"name": "month", "type": "int"}]}
NEW = OLD | {"fields": [*OLD["fields"], {"name": "carrier", "type": ["null", "string"], "default": None}]}
CARRIER = {
    "type": "record",
    "name": "Carrier",
    "fields": [{"name": "code", "type": "string"}, {"name": "name", "type": "string"}],
}


JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
BY_SCHEMA = pytest.mark.parametrize(
    "schema",
    ["id BIGINT, name STRING", pytest.param(json.dumps(JSON_SCHEMA), marks=pytest.mark.long)],
    ids=["ddl", "json-schema"],
)
"""Values of JSON by columns in DDL, and by a JSON Schema."""


def framed(schema_id, schema, value):
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, value)
    return b"\x00" + struct.pack(">I", schema_id) + body.getvalue()


@pytest.fixture(scope="module")
def warming():
    """The messages of the driver while it starts Spark before the first job."""
    return []


@pytest.fixture(scope="module")
def driver(warming):
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    driver.warm(make_job("127.0.0.1:9", [], "/nowhere", partition_by=["month"]), warming.append)
    yield driver
    driver.close()


def run(driver, job):
    said = []
    return driver.run(job, said.append), said


@pytest.fixture(scope="module")
def registry():
    with RegistryThread() as started:
        yield started


def register(registry, topic, schema):
    with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
        return client.register(f"{topic}-value", json.dumps(schema))


@pytest.fixture(scope="module")
def flights(apache_kafka, registry):
    topic, carriers = f"flights-{uuid.uuid4().hex[:6]}", f"carriers_{uuid.uuid4().hex[:6]}"
    before, after, other = (
        register(registry, topic, OLD),
        register(registry, topic, NEW),
        register(registry, carriers, CARRIER),
    )
    old = [framed(before, OLD, {"id": n, "month": n % 3 + 1}) for n in range(100)]
    new = [framed(after, NEW, {"id": n, "month": n % 3 + 1, "carrier": "AA"}) for n in range(100, 200)]
    fill(apache_kafka.bootstrap_servers, topic, [*old, *new])
    fill(apache_kafka.bootstrap_servers, carriers, [framed(other, CARRIER, {"code": "AA", "name": "American"})], 1)
    return Input(topic, {"0": 0, "1": 0}, {"0": 100, "1": 100}, "avro"), Input(carriers, {"0": 0}, {"0": 1}, "avro")


@pytest.fixture
def job_for(apache_kafka, registry, tmp_path):
    """Makes a job that reads these inputs and writes to ``tmp_path / "out"``."""

    def made(inputs, **changes):
        more = {"path": str(tmp_path / "out"), "registry": {"schema.registry.url": registry.url}} | changes
        return make_job(apache_kafka.bootstrap_servers, inputs, **more)

    return made


def rows_of(folder, format_="parquet"):
    return ds.dataset(folder, format=format_, partitioning="hive").to_table().to_pylist()


@pytest.mark.long
def test_a_driver_that_was_started_before_its_first_job_runs_it_on_that_session(driver, warming, job_for, flights):
    done, said = run(driver, job_for([flights[0]]))
    assert [given["note"] for given in warming] == ["starting Spark", "Spark is ready"]
    assert done["rows"] == {flights[0].topic: 200}
    assert not [given for given in said if given["note"] == "starting Spark"]


@pytest.mark.long
def test_both_writer_schemas_arrive_in_partitioned_parquet_and_a_second_run_replaces_the_first(
    driver, job_for, flights, tmp_path
):
    folder = tmp_path / "out[1]{a,b}*"  # where a glob is escaped
    job = job_for([flights[0]], partition_by=["month"], path=str(folder))
    done, said = run(driver, job_for([flights[0]], path=str(folder)))
    assert done["rows"] == {flights[0].topic: 200} and not [p for p in folder.iterdir() if p.is_dir()]
    run(driver, job)
    run(driver, job)
    rows = rows_of(folder)
    assert sorted(row["id"] for row in rows) == list(range(200))
    assert [row["carrier"] for row in rows].count("AA") == 100
    assert sorted(p.name for p in folder.iterdir() if p.is_dir()) == ["month=1", "month=2", "month=3"]


@pytest.mark.long
def test_sql_joins_a_lookup_topic(driver, job_for, flights, tmp_path):
    views = [given.view for given in flights]
    sql = f"SELECT c.name, count(*) AS n FROM {views[0]} f JOIN {views[1]} c ON f.carrier = c.code GROUP BY c.name"
    run(driver, job_for(list(flights), sql=sql))
    assert rows_of(tmp_path / "out") == [{"name": "American", "n": 100}]


def test_a_lookup_topic_is_a_table_of_the_newest_record_of_each_key(driver, job_for, apache_kafka, tmp_path):
    topic, table = f"sales_{uuid.uuid4().hex[:6]}", f"prices_{uuid.uuid4().hex[:6]}"
    fill(apache_kafka.bootstrap_servers, topic, [b'{"item": "a"}', b'{"item": "b"}', b'{"item": "c"}'], 1)
    prices = [("a", 1), ("b", 2), ("a", 3), ("c", 4), (None, 9)]
    values = [(key, json.dumps({"item": key or "c", "price": price}).encode()) for key, price in prices] + [("b", None)]
    fill(apache_kafka.bootstrap_servers, table, values, 1)
    inputs = [
        Input(topic, {"0": 0}, {"0": 3}, "json", "item STRING, price INT"),
        Input(table, {"0": 0}, {"0": 6}, "json", "item STRING, price INT", lookup=True),
    ]
    sql = f"SELECT s.item, p.price FROM {topic} s LEFT JOIN {table} p ON s.item = p.item"
    run(driver, job_for(inputs, registry={}, sql=sql))
    rows = sorted(((row["item"], row["price"]) for row in rows_of(tmp_path / "out")), key=str)
    assert rows == [("a", 3), ("b", None), ("c", 4), ("c", 9)]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param("SELECT id FROM fligths", id="view", marks=pytest.mark.long),
        pytest.param("SELECT idd FROM {view}", id="column"),
    ],
)
def test_a_name_that_the_query_does_not_know_is_told_with_those_that_there_are(driver, job_for, flights, wrong):
    view = flights[0].view
    with pytest.raises(ConnectError) as failed:
        run(driver, job_for([flights[0]], sql=wrong.format(view=view)))
    words = str(failed.value)
    assert f"The query can use: {view} (id BIGINT, month INT, carrier STRING)" in words
    assert "fligths" in words or "idd" in words


@pytest.mark.long
def test_two_topics_that_are_one_view_are_refused(driver, job_for, apache_kafka):
    name = uuid.uuid4().hex[:6]
    inputs = [Input(f"t{name}{mark}x", {"0": 0}, {"0": 1}, "string") for mark in "-_"]
    for input_ in inputs:
        fill(apache_kafka.bootstrap_servers, input_.topic, ["a"], 1)
    with pytest.raises(ConnectError, match=f"are both the view t{name}_x"):
        run(driver, job_for(inputs, registry={}, sql=f"SELECT * FROM t{name}_x"))


@pytest.mark.long
def test_a_schema_of_another_subject_is_looked_up_by_its_id(driver, job_for, apache_kafka, registry, tmp_path):
    topic = f"later-{uuid.uuid4().hex[:6]}"
    first, second = register(registry, topic, OLD), register(registry, f"{topic}-of-another", NEW)
    values = [framed(first, OLD, {"id": 0, "month": 1}), framed(second, NEW, {"id": 1, "month": 1, "carrier": "AA"})]
    fill(apache_kafka.bootstrap_servers, topic, values, 1)
    run(driver, job_for([Input(topic, {"0": 0}, {"0": 2}, "avro")]))
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [0, 1]


@pytest.mark.long
def test_an_unknown_schema_id_fails_the_job_and_names_the_record(driver, job_for, apache_kafka, registry, tmp_path):
    topic = f"unknown-{uuid.uuid4().hex[:6]}"
    known = register(registry, topic, OLD)
    values = [framed(known, OLD, {"id": 0, "month": 1}), framed(99_999, OLD, {"id": 1, "month": 1})]
    fill(apache_kafka.bootstrap_servers, topic, values, 1)
    with pytest.raises(ConnectError, match=rf"^the Spark job failed: [^|]*{topic}[^|]*offset 1[^|]*99999") as failed:
        run(driver, job_for([Input(topic, {"0": 0}, {"0": 2}, "avro")]))
    assert not failed.value.retriable
    assert not list((tmp_path / "out").glob("part-*"))


@pytest.mark.long
@BY_SCHEMA
def test_json_becomes_the_columns_of_its_schema_and_a_value_that_is_none_is_named(
    driver, job_for, apache_kafka, tmp_path, schema
):
    topic = f"json-{uuid.uuid4().hex[:6]}"
    values = [b'{"id": 1, "name": "a"}', b'{"id": 2, "more": 3}', None, b'{"id": ']
    fill(apache_kafka.bootstrap_servers, topic, values, 1)
    run(driver, job_for([Input(topic, {"0": 0}, {"0": 3}, "json", schema)], registry={}))
    assert rows_of(tmp_path / "out") == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    with pytest.raises(ConnectError, match=rf"{topic}.*offset 3"):
        run(driver, job_for([Input(topic, {"0": 0}, {"0": 4}, "json", schema)], registry={}, run_id="def"))


def left_out(driver, job):
    """The messages of a job, and (offset, bytes, key, reason) of the records that it leaves out."""
    batches = []
    done = driver.run(job, lambda said: None, batches.append)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return done, [(row["offset"], row["bytes"], row["key"], row["error"]) for row in rows]


@pytest.mark.long
@BY_SCHEMA
def test_a_job_that_tolerates_errors_leaves_records_out_and_hands_them_over(
    driver, job_for, apache_kafka, tmp_path, schema
):
    topic = f"json-{uuid.uuid4().hex[:6]}"
    values = [b'{"id": 1, "name": "a"}', b"\xff", None, b'{"id": 2, "name": "b"}', b'{"id": ']
    fill(apache_kafka.bootstrap_servers, topic, values, 1)
    input_ = Input(topic, {"0": 0}, {"0": 5}, "json", schema)
    done, bad = left_out(driver, job_for([input_], registry={}, tolerates_errors=True))
    assert (done["rows"], done["left_out"]) == ({topic: 2}, 2)
    assert [(offset, value, key) for offset, value, key, _ in bad] == [(1, b"\xff", None), (4, b'{"id": ', None)]
    assert all(reason for *_, reason in bad)
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [1, 2]


@pytest.mark.long
def test_records_of_a_topic_that_is_read_in_a_subquery_alone_are_handed_over(driver, job_for, apache_kafka, tmp_path):
    topic, excluded = f"json_{uuid.uuid4().hex[:6]}", f"excluded_{uuid.uuid4().hex[:6]}"
    fill(apache_kafka.bootstrap_servers, topic, [b'{"id": 1}', b'{"id": 2}'], 1)
    fill(apache_kafka.bootstrap_servers, excluded, [b'{"id": 2}', b'{"id": '], 1)
    inputs = [Input(name, {"0": 0}, {"0": 2}, "json", "id BIGINT") for name in (topic, excluded)]
    sql = f"SELECT id FROM {topic} WHERE id NOT IN (SELECT id FROM {excluded})"
    done, bad = left_out(driver, job_for(inputs, registry={}, sql=sql, tolerates_errors=True))
    assert [row["id"] for row in rows_of(tmp_path / "out")] == [1]
    assert done["left_out"] == 1 and [(offset, value) for offset, value, *_ in bad] == [(1, b'{"id": ')]


@pytest.mark.long
def test_records_of_a_lookup_topic_that_are_left_out_are_counted_and_not_handed_over(
    driver, job_for, apache_kafka, registry, flights, tmp_path
):
    topic = f"lookup_{uuid.uuid4().hex[:6]}"
    known = register(registry, topic, CARRIER)
    fill(apache_kafka.bootstrap_servers, topic, [framed(known, CARRIER, {"code": "AA", "name": "American"}), b"bad"], 1)
    lookup = Input(topic, {"0": 0}, {"0": 2}, "avro", lookup=True)
    sql = f"SELECT f.id, l.name FROM {flights[0].view} f JOIN {topic} l ON f.carrier = l.code"
    done, bad = left_out(driver, job_for([flights[0], lookup], sql=sql, tolerates_errors=True))
    assert (done["left_out"], bad) == (1, [])
    assert len(rows_of(tmp_path / "out")) == 100


@pytest.mark.long
def test_topics_with_one_path_are_all_there(driver, job_for, apache_kafka, tmp_path):
    inputs = []
    for n in range(2):
        topic = f"both-{uuid.uuid4().hex[:6]}"
        fill(apache_kafka.bootstrap_servers, topic, [f"{n}"], 1)
        inputs.append(Input(topic, {"0": 0}, {"0": 1}, "string"))
    for _ in range(2):
        run(driver, job_for(inputs, registry={}))
        assert sorted(row["value"] for row in rows_of(tmp_path / "out")) == ["0", "1"]


@pytest.mark.long
def test_csv_has_a_header_and_the_options_of_its_writer(driver, job_for, flights, tmp_path):
    run(driver, job_for([flights[0]], format="csv", options={"sep": ";", "nullValue": "-"}, files=1))
    (file,) = (tmp_path / "out").glob("part-*.csv")
    lines = file.read_text().splitlines()
    assert (lines[0], len(lines)) == ("id;month;carrier", 201)
    assert {line.split(";")[2] for line in lines[1:]} == {"AA", "-"}


@pytest.mark.long
def test_avro_files_have_the_columns_of_the_topic(job_for, flights, tmp_path):
    driver = SparkDriver(stopping=threading.Event(), idle_s=60, packages=PACKAGES["avro"])
    try:
        run(driver, job_for([flights[0]], format="avro", files=1))
    finally:
        driver.close()
    (file,) = (tmp_path / "out").glob("part-*.avro")
    with file.open("rb") as stream:
        assert sorted(row["id"] for row in fastavro.reader(stream)) == list(range(200))


@pytest.mark.long
def test_overwrite_replaces_the_folders_that_a_job_writes_to(driver, job_for, flights, tmp_path):
    view = flights[0].view
    run(driver, job_for([flights[0]], partition_by=["month"], run_id="a"))
    query = {"sql": f"SELECT * FROM {view} WHERE month = 1 AND id < 6", "partition_by": ["month"], "mode": "overwrite"}
    for run_id in ("b", "b", "c"):
        run(driver, job_for([flights[0]], run_id=run_id, **query))
        rows = rows_of(tmp_path / "out")
        assert sorted(row["id"] for row in rows if row["month"] == 1) == [0, 3]
        assert len([row for row in rows if row["month"] != 1]) == 133


@pytest.mark.long
def test_files_have_about_the_size_that_is_asked_for(driver, job_for, apache_kafka, tmp_path):
    topic = f"sized-{uuid.uuid4().hex[:6]}"
    fill(apache_kafka.bootstrap_servers, topic, [os.urandom(320).hex() for _ in range(10_000)], 2)
    input_ = Input(topic, {"0": 0, "1": 0}, {"0": 5000, "1": 5000}, "string")
    sizes = {}
    for file_bytes in (500_000, 50_000_000):
        given = {"registry": {}, "format": "json", "file_bytes": file_bytes, "path": str(tmp_path / str(file_bytes))}
        run(driver, job_for([input_], **given))
        sizes[file_bytes] = [file.stat().st_size for file in (tmp_path / str(file_bytes)).glob("part-*")]
    assert len(sizes[50_000_000]) == 1
    assert 4 <= len(sizes[500_000]) <= 40


@pytest.mark.long
def test_text_is_a_column_and_has_its_coordinates_beside_it(driver, job_for, apache_kafka, tmp_path):
    topic = f"text-{uuid.uuid4().hex[:6]}"
    fill(apache_kafka.bootstrap_servers, topic, ["a", "ü"], 2)
    input_ = Input(topic, {"0": 0, "1": 0}, {"0": 1, "1": 1}, "string")
    run(driver, job_for([input_], registry={}, metadata_columns=True))
    rows = sorted(
        (row["value"], row["__topic"], row["__partition"], row["__offset"]) for row in rows_of(tmp_path / "out")
    )
    assert rows == [("a", topic, 0, 0), ("ü", topic, 1, 0)]


@pytest.mark.long
@pytest.mark.parametrize("away", ["kafka", "hdfs"])
def test_a_server_that_is_away_is_a_failure_that_passes(apache_kafka, job_for, flights, tmp_path, away):
    (port,) = free_ports(1)
    kafka = {"bootstrap.servers": apache_kafka.bootstrap_servers}
    given = {"path": f"hdfs://127.0.0.1:{port}/out"}
    if away == "kafka":
        kafka = {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "request.timeout.ms": "2000",
        }
        given = {"path": str(tmp_path / "out")}
    conf = {"spark.hadoop.ipc.client.connect.max.retries": "1", "spark.hadoop.ipc.client.connect.retry.interval": "100"}
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    with pytest.raises(RetriableConnectError, match="the Spark job failed"):
        run(driver, job_for([flights[0]], **given, kafka=kafka, conf=conf))
    driver.close()


def test_a_job_is_cancelled_soon_after_it_is_asked_to_stop(job_for, flights, tmp_path):
    stopping = threading.Event()
    driver = SparkDriver(stopping=stopping, idle_s=60)
    with pytest.raises(ConnectError, match="cancelled"):
        driver.run(job_for([flights[0]]), lambda said: stopping.set())
    assert not list((tmp_path / "out").glob("part-*"))


@pytest.mark.long
def test_a_driver_whose_worker_is_gone_ends_in_the_middle_of_its_job(job_for, flights, tmp_path):
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    endless = f"SELECT count(*) FROM {flights[0].view}, range(1000000000000) r WHERE month + r.id < 0"

    def lose_the_worker(said):
        if said["unit"] == "tasks" and said["done"] is not None and said["total"]:
            driver._process.stdin.close()

    with pytest.raises(ConnectError, match="ended with status 143"):
        driver.run(job_for([flights[0]], sql=endless), lose_the_worker)
    driver.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "whose", ["jvm after 0 s", "jvm after 0.5 s", "jvm after 1 s", "jvm after 2 s", "jvm in a job", "driver"]
)
def test_a_process_of_spark_that_is_killed_is_a_failure_that_passes(job_for, flights, tmp_path, whose):
    driver, ended = SparkDriver(stopping=threading.Event(), idle_s=60), threading.Event()
    endless = f"SELECT count(*) FROM {flights[0].view}, range(1000000000000) r WHERE month + r.id < 0"

    def processes():
        main = psutil.Process(driver._process.pid)
        return main, [child for child in main.children(recursive=True) if child.name() == "java"]

    def kill_at_the_start():
        """Wherever the JVM is then: before Python knows its port, while the session is made, or in the job."""
        while not ended.wait(0.01):
            with suppress(psutil.Error, AttributeError):
                if jvms := processes()[1]:
                    ended.wait(float(whose.split()[2]))
                    jvms[0].kill()
                    return

    def kill_in_the_job(said):
        if whose in ("jvm in a job", "driver") and said["unit"] == "tasks" and said["total"]:
            main, jvms = processes()
            (main if whose == "driver" else jvms[0]).kill()

    watcher = threading.Thread(target=kill_at_the_start)
    if whose.endswith(" s"):
        watcher.start()
    try:
        with pytest.raises(RetriableConnectError, match="killed"):
            driver.run(job_for([flights[0]], sql=endless), kill_in_the_job)
    finally:
        ended.set()
        driver.close()


def test_a_driver_that_is_cancelled_while_its_jvm_starts_leaves_no_files(job_for, flights, tmp_path, monkeypatch):
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
            driver.run(job_for([flights[0]]), lambda said: None)
    finally:
        ended.set()
        watcher.join()
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_what_a_session_is_configured_with_is_in_no_command_line_and_an_idle_driver_ends(
    apache_kafka, registry, job_for, flights, tmp_path
):
    login = "s3cret-of-the-log"
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{login}";'
    kafka = {"bootstrap.servers": apache_kafka.bootstrap_servers, "sasl.jaas.config": jaas, "sasl.mechanism": "PLAIN"}
    registry_user = "s3cret-of-the-registry"
    logins = {
        "kafka": kafka,
        "registry": {
            "schema.registry.url": registry.url,
            "basic.auth.credentials.source": "USER_INFO",
            "basic.auth.user.info": f"u:{registry_user}",
        },
    }
    secret, tricky = "s3cret-of-the-store", " a=b:c#d!e\\t\tg ü"
    conf = {
        "spark.hadoop.fs.s3a.secret.key": secret,
        "spark.tidegate.tricky": tricky,
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
    }
    sql = f"SELECT current_timezone() AS zone, '${{spark.tidegate.tricky}}' AS tricky, count(*) AS n FROM {flights[0].view}"
    seen, modes, log, addresses, files, told = [], set(), [], set(), set(), []

    def look(said):
        told.append(said)
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                seen.append((process.name(), " ".join([*process.cmdline(), *process.environ().values()])))
                addresses.update(c.laddr.ip for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN)

        with suppress(AttributeError, FileNotFoundError):  # before the driver
            log.append((Path(driver._folder.name) / "spark.log").read_text())
            modes.add((Path(driver._folder.name) / "spark.conf").stat().st_mode & 0o077)
            files.update(path.name.partition("-")[0] for path in Path(driver._folder.name).iterdir())

    driver = SparkDriver(stopping=threading.Event(), idle_s=0.0)
    driver.run(job_for([flights[0]], conf=conf, sql=sql, **logins), look)
    until(lambda: driver._process is None, "the driver gone")
    assert modes == {0}
    assert {"blockmgr", "spark"} <= files, "the JVM's files go with the driver's folder"
    assert "java" in {name for name, _ in seen}
    assert addresses and addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, "the UI and all else listen on loopback"
    assert any("Spark's own page is http://127.0.0.1:" in said["note"] for said in told)
    stages = [part for said in told for part in said.get("parts", ())]
    assert stages and all(part["name"].startswith("stage ") and part["total"] for part in stages)
    assert not any("$anonfun" in str(said) for said in told), "no name of an anonymous function of Spark's"
    secrets = (secret, login, registry_user)
    assert [line for _, line in seen if any(word in line for word in secrets)] == []
    assert not any(word in log[-1] for word in secrets)
    (row,) = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    assert (row["zone"], row["n"]) == ("Asia/Tokyo", 200)
    assert row["tricky"] == tricky.strip().replace("\\t", "\t"), "a literal of SQL reads its escapes"


@pytest.mark.long
def test_an_idle_driver_writes_the_archive_of_classes_that_the_next_one_starts_with(
    job_for, flights, tmp_path, monkeypatch
):
    home = find_java(tmp_path)
    if not (home / "lib" / "server" / "classes.jsa").exists():
        assert archive_options(home) == "", "Java without an archive of its own classes"
        return
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))
    driver = SparkDriver(stopping=threading.Event(), idle_s=0.0)
    job = job_for([flights[0]])
    driver.run(job, lambda said: None)
    until(lambda: driver._process is None, "the driver gone")
    (archive,) = (tmp_path / "cache" / "spark-classes").iterdir()
    mapped = []

    def look(_):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, FileNotFoundError):
                if process.name() == "java":
                    mapped.append(str(archive) in Path(f"/proc/{process.pid}/maps").read_text())

    second = SparkDriver(stopping=threading.Event(), idle_s=60)
    second.run(dataclasses.replace(job, path=str(tmp_path / "again")), look)
    second.close()
    assert mapped and mapped[-1]
    whole = archive.read_bytes()
    archive.write_bytes(whole[:1_000_000])  # a copy that was cut off
    assert "SharedArchiveFile" not in archive_options(home)
    archive.write_bytes(whole[:50_000_000] + bytes(1000) + whole[50_001_000:])
    classes = Path(pyspark.__file__).parent / "jars" / "*"
    command = [home / "bin" / "java", *shlex.split(archive_options(home)), "-cp", classes, "-version"]
    started = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (started.returncode, "SharedArchiveFile" in archive_options(home)) == (0, True), started.stderr
