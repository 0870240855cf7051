"""Iceberg and Delta tables as targets of Spark jobs, in one session of real Spark."""

from __future__ import annotations

import dataclasses
import json
import random
import time
import uuid

import pyarrow.parquet as pq
import pytest

from connect.api import ConnectError, TopicPartition
from connect.bench import Bench
from connectors.delta.sink import DeltaSinkConnector
from connectors.spark.job import Input, Maintenance, Merge, Stream
from tests.connectors.iceberg.test_changes import changes, row
from tests.support.spark import QUICK_CONF, create_topic, lake_conf, make_job, produce

pytestmark = [pytest.mark.servers, pytest.mark.proof]

FORMATS = pytest.mark.parametrize("format_", ["iceberg", pytest.param("delta", marks=pytest.mark.long)])
KINDS = pytest.mark.parametrize("format_", ["iceberg", "iceberg at a path", "delta", "delta in a catalog"])
DDL = "id BIGINT, name STRING"


@pytest.fixture(scope="module")
def conf(warehouse):
    """One session for both formats."""
    return lake_conf(warehouse) | {
        "spark.sql.catalog.tidegate": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.tidegate.type": "hadoop",
        "spark.sql.catalog.tidegate.warehouse": str(warehouse),
        "spark.sql.catalog.tidegate.cache-enabled": "false",
    }


class Loads:
    """Jobs that load one topic into one table, each from where the last one ended."""

    def __init__(self, driver, bootstrap, conf, warehouse, format_, *, partitions=1, ddl=DDL, **job):
        self.driver, self.bootstrap, self.conf = driver, bootstrap, conf
        self.format, self.ddl, self.job = format_.split()[0], ddl, job
        self.topic = f"t{uuid.uuid4().hex[:8]}"
        self.path = str(warehouse / "delta" / self.topic)
        self.table = {"iceberg": f"lake.db.{self.topic}", "delta in a catalog": f"shop.{self.topic}"}.get(format_, "")
        self.name = self.table or (
            f"tidegate.delta.{self.topic}" if self.format == "iceberg" else f"delta.`{self.path}`"
        )
        self.ends = {str(n): 0 for n in range(partitions)}
        self.produced = dict(self.ends)
        create_topic(bootstrap, self.topic, partitions)

    def produce(self, *records, at_ms=None):
        """Records are a value, or a key and a value, in the first partition; or partition, key and value."""
        made = []
        for record in records:
            whole = record if isinstance(record, tuple) else (None, record)
            partition, key, value = whole if len(whole) == 3 else (0, *whole)
            made.append((partition, *(None if part is None else json.dumps(part) for part in (key, value))))
            self.produced[str(partition)] += 1
        produce(self.bootstrap, self.topic, made, at_ms)

    def next(self, **changes):
        given = (
            {"key_format": "json", "key_schema": "id BIGINT", "topic_id": "an id"}
            if self.job.get("mode") == "merge"
            else {"topic_id": "an id"}
        )
        ddl = changes.pop("ddl", self.ddl)
        input_ = Input(self.topic, dict(self.ends), dict(self.produced), "json", ddl, **given)
        job = {
            "run_id": uuid.uuid4().hex[:16],
            "format": self.format,
            "table": self.table,
            "connector": f"load of {self.topic}",
            "conf": QUICK_CONF | self.conf,
        }
        return make_job(self.bootstrap, [input_], self.path, **(job | self.job | changes))

    def run(self, job=None, on_progress=lambda said: None, **changes):
        job = job or self.next(**changes)
        done = self.driver.run(job, on_progress)
        self.last_run = job.run_id
        self.ends = dict(job.inputs[0].stops)
        return done

    def select(self, sql):
        """The result of a query over the table, as rows of Python."""
        folder = f"{self.path}-{uuid.uuid4().hex[:8]}"
        wanted = dataclasses.replace(
            self.next(),
            format="parquet",
            mode="append",
            table="",
            path=folder,
            sql=sql.format(table=self.name),
            run_id="a",
        )
        empty = dataclasses.replace(wanted.inputs[0], starts={"0": 0}, stops={"0": 0})
        self.driver.run(dataclasses.replace(wanted, inputs=[empty]), lambda said: None)
        return pq.read_table(folder).to_pylist()

    def rows(self):
        return sorted(self.select("SELECT * FROM {table}"), key=lambda row: json.dumps(row, default=str))


@pytest.fixture
def loads(driver, tidegate_broker, conf, warehouse):
    def made(format_, **given):
        return Loads(driver, tidegate_broker.bootstrap_servers, conf, warehouse, format_, **given)

    return made


class Killed(Exception):
    pass


@pytest.mark.long
@FORMATS
def test_a_run_that_is_repeated_after_its_commit_is_in_the_table_once(loads, format_):
    load = loads(format_)
    load.produce({"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    job = load.next()

    def die_between_the_commits(said):
        if said["note"].startswith("committed to"):
            load.driver.kill()
            raise Killed

    with pytest.raises(Killed):
        load.driver.run(job, die_between_the_commits)
    done = load.run(job)
    assert "has the run already" in done["note"]
    load.produce({"id": 3, "name": "c"})
    load.run()
    assert [row["id"] for row in load.rows()] == [1, 2, 3]


@pytest.mark.long
@KINDS
def test_overwrite_replaces_the_partitions_that_a_job_has_rows_for(loads, format_):
    load = loads(format_, mode="overwrite", partition_by=["name"])
    load.produce({"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    load.run()
    load.produce({"id": 3, "name": "b"}, {"id": 4, "name": "b"})
    load.run()
    assert [(row["id"], row["name"]) for row in load.rows()] == [(1, "a"), (3, "b"), (4, "b")]
    load.run(sql=f"SELECT * FROM {load.topic} WHERE false")
    assert len(load.rows()) == 3


@pytest.mark.long
@FORMATS
def test_random_changes_by_key_give_what_a_dict_gives_also_when_runs_are_repeated(loads, format_):
    load = loads(format_, mode="merge", partitions=3)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance, model = random.Random(seed), {}
    for _ in range(3):
        changes = []
        for _ in range(60):
            key = chance.randrange(25)
            value = None if chance.random() < 0.25 else {"id": key, "name": f"v{chance.randrange(1000)}"}
            changes.append((key % 3, {"id": key}, value))
            model.pop(key, None) if value is None else model.update({key: value["name"]})
        load.produce(*changes)
        job = load.next()
        load.run(job)
        load.run(job)
        assert {row["id"]: row["name"] for row in load.rows()} == model
    assert len(load.rows()) == len(model)
    load.ends = dict.fromkeys(load.ends, 0)
    job = load.next()
    half = {partition: stop // 2 for partition, stop in job.inputs[0].stops.items()}
    load.run(dataclasses.replace(job, inputs=[dataclasses.replace(job.inputs[0], stops=half)]))
    assert {row["id"]: row["name"] for row in load.rows()} == model, "older changes are not put over newer ones"


@pytest.mark.long
@FORMATS
def test_a_stream_merges_its_micro_batches_each_once(loads, format_, tmp_path):
    load = loads(format_, mode="merge", partitions=2)
    stream = Stream(
        checkpoint=str(tmp_path / "checkpoint"), ends=True, interval_ms=0, max_offsets=4, starting="earliest", output_mode="append",
        watermark_column="", watermark_delay="0 seconds", loses_data=False,
    )  # fmt: skip

    def run(on_progress=lambda said: None):
        job = load.next(sql=f"SELECT * FROM {load.topic} WHERE id < 100", stream=stream)
        inputs = [dataclasses.replace(input_, starts={}, stops={}) for input_ in job.inputs]
        return load.driver.run(dataclasses.replace(job, inputs=inputs), on_progress)

    def key(n):
        return {"id": n}

    def written(n, name):
        return key(n), {"id": n, "name": name}

    load.produce(written(1, "a"), written(1, "b"), (key(1), None), written(2, "a"), written(2, "b"), written(100, "x"))
    load.produce((1, *written(3, "old")), at_ms=1000)
    load.produce((0, *written(3, "new")), at_ms=2000)

    def die(said):
        if said["unit"] == "rows":
            load.driver.kill()
            raise Killed

    with pytest.raises(Killed):
        run(die)
    done = run()
    assert load.rows() == [{"id": 2, "name": "b"}, {"id": 3, "name": "new"}]
    load.produce((key(2), None), written(1, "again"))
    assert run()["in"] == 2 and done["batches"] >= 1
    assert load.rows() == [{"id": 1, "name": "again"}, {"id": 3, "name": "new"}]
    assert run()["batches"] == 0


@pytest.mark.long
@FORMATS
def test_a_record_without_its_key_is_named_and_nothing_is_written(loads, format_):
    load = loads(format_, mode="merge", merge=Merge(keys=["id"]))
    load.produce(({"id": 1}, {"id": 1, "name": "a"}), (None, {"name": "b"}))
    with pytest.raises(ConnectError, match=rf"topic {load.topic} partition 0 offset 1: the merge key \(id\) is null"):
        load.run()
    load.run(sql=f"SELECT * FROM {load.topic} WHERE id IS NOT NULL")
    assert load.rows() == [{"id": 1, "name": "a"}]


ENVELOPE = "before STRUCT<id: BIGINT, name: STRING>, after STRUCT<id: BIGINT, name: STRING>, op STRING"


@pytest.mark.long
@FORMATS
def test_envelopes_of_debezium_insert_update_and_delete(loads, format_):
    load = loads(format_, mode="merge", ddl=ENVELOPE)

    def change(op, before, after):
        rows = [{"id": n, "name": name} if name else None for n, name in (before, after)]
        return {"id": rows[1]["id"] if rows[1] else rows[0]["id"]}, {"before": rows[0], "after": rows[1], "op": op}

    load.produce(change("r", (1, None), (1, "a")), change("c", (2, None), (2, "b")), change("c", (3, None), (3, "c")))
    load.run()
    load.produce(change("u", (1, "a"), (1, "A")), change("d", (2, "b"), (2, None)), ({"id": 2}, None))
    load.run()
    assert [(row["id"], row["name"]) for row in load.rows()] == [(1, "A"), (3, "c")]


@pytest.mark.long
@FORMATS
def test_a_large_value_that_the_source_left_out_stays_as_it_is(loads, format_):
    load = loads(format_, mode="merge", ddl=ENVELOPE)

    def change(key, name, op="u"):
        return {"id": key}, {"after": {"id": key, "name": name}, "op": op}

    left_out = "__debezium_unavailable_value"
    load.produce(change(1, "large", "c"), change(2, "old", "c"))
    load.run()
    load.produce(change(1, left_out), change(2, "new"), change(2, left_out), change(3, left_out))
    load.run()
    assert [(row["id"], row["name"]) for row in load.rows()] == [(1, "large"), (2, "new"), (3, None)]
    load.produce(change(1, None))
    load.run()
    assert load.rows()[0] == {"id": 1, "name": None}


@pytest.mark.long
@FORMATS
def test_new_and_wider_columns_change_the_table_and_others_are_refused(loads, format_):
    load = loads(format_, ddl="id INT, name STRING, gone STRING, part STRUCT<x: FLOAT>")
    load.produce({"id": 1, "name": "a", "gone": "g", "part": {"x": 0.5}})
    load.run()
    load.produce({"id": 1 << 40, "name": "b", "more": [{"q": 1}], "part": {"x": 0.1, "y": 2}})
    load.run(ddl="id BIGINT, name STRING, more ARRAY<STRUCT<q: INT>>, part STRUCT<x: DOUBLE, y: INT>")
    assert load.rows() == [
        {"id": 1, "name": "a", "gone": "g", "part": {"x": 0.5, "y": None}, "more": None},
        {"id": 1 << 40, "name": "b", "gone": None, "part": {"x": 0.1, "y": 2}, "more": [{"q": 1}]},
    ]
    load.produce({"id": 3, "name": 5})
    with pytest.raises(ConnectError, match="name is STRING in the table and BIGINT in the rows") as refused:
        load.run(ddl="id BIGINT, name BIGINT")
    assert not refused.value.retriable
    load.run()
    assert len(load.rows()) == 3


@pytest.mark.long
@FORMATS
def test_a_history_has_a_version_for_each_change(loads, format_):
    load = loads(format_, mode="merge", merge=Merge(history="scd2"))

    def change(*changes):
        for second, key, name in changes:
            load.produce(({"id": key}, name and {"id": key, "name": name}), at_ms=1_700_000_000_000 + 1000 * second)

    def versions():
        rows = load.select(
            "SELECT id, name, unix_seconds(valid_from) - 1700000000 AS a, unix_seconds(valid_to) - 1700000000 AS b, is_current "
            "FROM {table} ORDER BY id, a"
        )
        return [(row["id"], row["name"], row["a"], row["b"], row["is_current"]) for row in rows]

    change((1, 1, "a"), (2, 2, "b"), (3, 1, "A"))
    load.run()
    assert versions() == [(1, "a", 1, 3, False), (1, "A", 3, None, True), (2, "b", 2, None, True)]
    change((5, 2, None), (6, 1, "AA"), (7, 2, "B"), (8, 3, None))
    job = load.next()
    load.run(job)
    load.run(job)
    assert versions() == [
        (1, "a", 1, 3, False),
        (1, "A", 3, 6, False),
        (1, "AA", 6, None, True),
        (2, "b", 2, 5, False),
        (2, "B", 7, None, True),
    ]


@pytest.mark.long
@FORMATS
def test_a_query_names_its_keys_and_may_mark_deletions(loads, format_):
    load = loads(format_, mode="merge", merge=Merge(keys=["code"]))
    load.produce(({"id": 1}, {"id": 1, "name": "open"}), ({"id": 2}, {"id": 2, "name": "open"}))
    kept = "SELECT id AS code, name, __deleted OR name = 'closed' AS __deleted, __topic, __partition, __offset, __timestamp"
    load.run(merge=Merge(keys=["code"]), sql=f"{kept} FROM {load.topic}")
    load.produce(({"id": 2}, {"id": 2, "name": "closed"}), ({"id": 3}, {"id": 3, "name": "open"}))
    load.run(merge=Merge(keys=["code"]), sql=f"{kept} FROM {load.topic}")
    assert [(row["code"], row["name"]) for row in load.rows()] == [(1, "open"), (3, "open")]
    load.produce(({"id": 4}, {"id": 4, "name": "a"}), ({"id": 4}, {"id": 4, "name": "b"}))
    twice = f"SELECT id AS code, name FROM {load.topic}"
    with pytest.raises(ConnectError, match=r'the key \(code\) = \{"code":4\} more than once'):
        load.run(merge=Merge(keys=["code"]), sql=twice)


@pytest.mark.long
@FORMATS
def test_a_table_is_maintained_after_the_first_job_behind_the_time_of_its_schedule(loads, format_):
    load, now = loads(format_, files=3), time.time()
    for hours, wanted in ((0, False), (0.01, False), (25, True), (25.01, False)):
        load.produce(*({"id": n, "name": "a"} for n in range(20)))
        done = load.run(maintenance=Maintenance("0 * * * *" if wanted else "0 0 1 1 *", 0, now + 3600 * hours))
        assert ("maintained" in done["note"]) is wanted, done["note"]
        if wanted:
            assert "9 files became 1" in done["note"]
    job = load.next()
    repeated = dataclasses.replace(job, run_id=load.last_run)
    assert "has the run already" in load.run(repeated)["note"], "maintenance leaves the commit that tells the run"
    assert len(load.rows()) == 80


@pytest.mark.long
@FORMATS
def test_a_preview_shows_rows_plan_and_what_becomes_of_the_table_and_writes_nothing(loads, format_):
    load = loads(format_, mode="merge")
    load.produce(({"id": 1}, {"id": 1, "name": "a"}), ({"id": 1}, {"id": 1, "name": "b"}), ({"id": 2}, None))
    (shown,) = load.driver.run(load.next(preview_rows=10), lambda said: None)["preview"]
    assert "CREATE TABLE" in shown and "id BIGINT" in shown and "BatchScan tidegate" in shown
    rows = [json.loads(line) for line in shown.splitlines() if line.startswith("  {")]
    assert sorted((row["id"], row.get("name"), row["__deleted"]) for row in rows) == [(1, "b", False), (2, None, True)]
    assert "has the run already" not in load.run()["note"]
    load.produce(({"id": 1}, {"id": 1, "more": 1.5}))
    (shown,) = load.driver.run(load.next(preview_rows=10, ddl="id BIGINT, more DOUBLE"), lambda said: None)["preview"]
    assert "ADD COLUMNS (`more` DOUBLE)" in shown
    assert load.rows() == [{"id": 1, "name": "b"}]


@pytest.mark.long
def test_spark_and_the_sink_without_a_jvm_write_one_delta_table(loads):
    load = loads("delta", ddl="id BIGINT, name STRING, n BIGINT")
    config = {
        "topics": "orders",
        "delta.tables": "rows",
        "delta.table.rows.path": load.path,
        "delta.tables.auto-create-enabled": "true",
        "delta.tables.upsert-mode-enabled": "true",
        "delta.commit.interval-ms": "0",
    }
    with Bench(DeltaSinkConnector, config).sink(TopicPartition("orders", 0)) as running:
        running.task.put([changes((1, row(1, 1)), (2, row(2, 1)), (3, row(3, 1)))])
        running.task.put([changes((2, row(2, 2)), (3, None), first=3)])
        running.task.flush()
        load.produce({"id": 4, "name": "of Spark", "n": 1}, {"id": 5, "name": "of Spark", "n": 1})
        load.run()
        assert [(each["id"], each["n"]) for each in load.rows()] == [(1, 1), (2, 2), (4, 1), (5, 1)]
        running.task.put([changes((4, row(4, 2)), (5, None), first=5)])
        running.task.flush()
    assert [(each["id"], each["name"]) for each in load.rows()] == [(1, "name 1"), (2, "name 2"), (4, "name 4")]
