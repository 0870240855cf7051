"""Loads of the Spark source in one session of real Spark: what is new in files, tables and databases, as records of a topic."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import uuid

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from broker.client import ClientConfig, TopicPartition, TransactionalProducer
from broker.client.blocking import Admin
from connect.api import ConnectError
from connectors.spark.job import Merge
from connectors.spark.load import Load
from tests.connectors.spark.test_tables import Loads as TableLoads
from tests.servers.process import wait_until
from tests.support.spark import QUICK_CONF, committed, create_topic, lake_conf

pytestmark = [pytest.mark.servers, pytest.mark.proof]


@pytest.fixture(scope="module")
def conf(warehouse):
    """One session for both formats of tables."""
    return QUICK_CONF | lake_conf(warehouse)


class Source:
    """Loads of one connector: each begins where the last one ended."""

    def __init__(self, driver, bootstrap, conf, **given):
        self.driver, self.bootstrap = driver, bootstrap
        self.topic = f"loaded-{uuid.uuid4().hex[:8]}"
        create_topic(bootstrap, self.topic, 1)
        keys = given.get("key_columns", [])
        self.load = Load(
            **{
                "name": "test",
                "connector": self.topic,
                "path": "",
                "table": "",
                "schema": "",
                "options": {},
                "mode": "incremental",
                "changes": "fail",
                "most_files": 1000,
                "late_ms": 60_000,
                "watermark": "",
                "sql": "",
                "topic": self.topic,
                "key_columns": [],
                "tasks": 8,
                "master": "local[2]",
                "jars": [],
                "conf": conf,
                "kafka": {"bootstrap.servers": bootstrap},
                "registry": {},
                "write_options": {
                    "value.format": "json",
                    "key.format": "json" if keys else "binary",
                    "transactions": "true",
                },
                **given,
            }
        )
        self.position = None

    def write(self, **changes):
        """The records are not visible yet."""
        return self.driver.run(
            dataclasses.replace(self.load, **{"position": self.position, **changes}), lambda said: None
        )

    def publish(self, done):
        with Admin(ClientConfig(self.bootstrap)) as admin:
            admin.commit_transactions([TransactionalProducer(*parts) for parts in done["transactions"]])
        self.position = done["position"]

    def run(self, **changes):
        done = self.write(**changes)
        if done["position"] is not None:
            self.publish(done)
        return done

    def records(self):
        """Keys and values of all committed records."""
        return [
            tuple(None if part is None else json.loads(part) for part in (message.key(), message.value()))
            for message in committed(self.bootstrap, self.topic)
        ]

    def new(self):
        """The values of records since the last call, in order of their ids."""
        values = [value for _, value in self.records()]
        seen = getattr(self, "_seen", 0)
        self._seen = len(values)
        return sorted(values[seen:], key=lambda value: value["id"])


@pytest.fixture
def source(driver, tidegate_broker, conf):
    return lambda **given: Source(driver, tidegate_broker.bootstrap_servers, conf, **given)


def ids(values):
    return [value["id"] for value in values]


def test_new_files_are_loaded_once_in_jobs_of_some_files_each(source, tmp_path):
    def file(name, *numbers, at):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": numbers}), path)
        os.utime(path, (at, at))

    loads = source(format="parquet", path=str(tmp_path), most_files=2, late_ms=10_000)
    file("day=1/a.parquet", 1, 2, at=1000)
    file("day=1/b.parquet", 3, at=1000)
    file("day=2/ö c%20.parquet", 4, at=1000)
    (tmp_path / "_temporary").mkdir()
    file("_temporary/d.parquet", 5, at=1000)
    assert [loads.run()["more"], loads.run()["more"]] == [True, False]
    assert loads.new() == [{"id": n, "day": day} for n, day in ((1, 1), (2, 1), (3, 1), (4, 2))]
    assert loads.run()["position"] is None
    file("day=2/late.parquet", 6, at=995)  # of a machine whose clock is late
    file("day=2/older.parquet", 7, at=900)
    file("day=1/a.parquet", 8, at=1001)  # written anew
    loads.run()
    assert ids(loads.new()) == [6, 8]
    assert loads.run()["position"] is None
    file("day=3/e.parquet", 9, at=2000)
    loads.run()
    assert ids(loads.new()) == [9]
    assert len(loads.position["recent"].split()) == 1  # bounded by what is hardly older than the newest


def test_csv_and_a_query_make_keyed_records(source, tmp_path):
    (tmp_path / "a.csv").write_text("id;name\n1;Ås\n2;\n")
    loads = source(
        format="csv", path=str(tmp_path), schema="id INT, name STRING", options={"delimiter": ";"}, key_columns=["id"],
        sql="SELECT id, upper(name) AS name, current_date() > DATE '2000-01-01' AS late FROM input",
    )  # fmt: skip
    shown = loads.write(preview_rows=5)["preview"][0]
    assert "id INT" in shown and '{"id":2,"late":true}' in shown
    assert loads.records() == []
    loads.run()
    assert sorted(loads.records(), key=str) == [
        ({"id": 1}, {"id": 1, "name": "ÅS", "late": True}),
        ({"id": 2}, {"id": 2, "late": True}),
    ]
    with pytest.raises(ConnectError, match=r"nme.*The query can use: input \(id INT, name STRING\)"):
        loads.run(sql="SELECT nme FROM input", position=None)


@pytest.mark.long
def test_a_load_that_was_not_published_is_invisible_and_its_repetition_is_there_once(source, tmp_path):
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet")
    loads = source(format="parquet", path=str(tmp_path))
    first = loads.write()
    assert loads.records() == []
    second = loads.write()  # as after a kill: it aborts what the first has left open
    loads.publish(second)
    loads.publish(second)  # which may happen again
    assert ids(loads.new()) == list(range(1000))
    with pytest.raises(Exception, match="epoch|fenced"):
        loads.publish(first)
    assert loads.new() == []


@pytest.mark.long
def test_a_driver_that_is_killed_while_it_writes_leaves_nothing(source, tmp_path):
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [1000]}), tmp_path / "b.parquet")
    loads = source(format="parquet", path=str(tmp_path))
    sleepy = "SELECT id, CASE WHEN id = 1000 THEN reflect('java.lang.Thread', 'sleep', 600000L) END AS slept FROM input"

    def kill_in_the_middle():
        with Admin(ClientConfig(loads.bootstrap)) as admin:
            partition = TopicPartition(loads.topic, 0)
            wait_until(
                lambda: admin.end_offsets([partition])[partition] >= 1000, "the first file is written", timeout_s=120
            )
        loads.driver.kill()

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    with pytest.raises(ConnectError, match="the Spark driver ended"):
        loads.write(sql=sleepy)
    killer.join()
    loads.run()
    assert ids(loads.new()) == list(range(1001))


@pytest.mark.long
def test_rows_of_a_database_are_loaded_by_a_column_that_grows_or_whole(source, driver, tmp_path):
    url = f"jdbc:derby:{tmp_path}/shop;create=true"
    jdbc = {"format": "jdbc", "table": "(SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) v(id, name)) t", "options": {"url": url}}  # fmt: skip
    loads = source(**jdbc, watermark="ID", sql="SELECT ID AS id, NAME AS name FROM input")
    loads.run()
    assert loads.position == {"column": "ID", "value": "3"}
    assert ids(loads.new()) == [1, 2, 3]
    assert loads.run()["position"] is None
    more = jdbc["table"].replace("(3, 'c')", "(3, 'c'), (4, 'd'), (5, 'e')")
    loads.run(table=more)
    assert loads.new() == [{"id": 4, "name": "d"}, {"id": 5, "name": "e"}]
    once = source(**jdbc, mode="once", sql="SELECT ID AS id FROM input")
    assert [once.run()["rows"], once.run()["rows"]] == [3, 0]
    each = source(**jdbc, mode="snapshot", sql="SELECT ID AS id FROM input")
    assert [each.run()["rows"], each.run()["rows"]] == [3, 3]
    with pytest.raises(ConnectError, match="spark.input.watermark.column is NAME, and the loads so far went by ID"):
        loads.run(watermark="NAME")


FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(driver, tidegate_broker, conf, warehouse):
    def made(format_, **job):
        return TableLoads(driver, tidegate_broker.bootstrap_servers, conf, warehouse, format_, **job)

    return made


def of_table(table):
    return {"format": table.format, "table": table.table, "path": "" if table.table else table.path}


def appended(table, *rows):
    table.produce(*rows)
    table.run()


@pytest.mark.long
@pytest.mark.parametrize(
    "format_",
    [
        "iceberg",
        pytest.param("delta", marks=pytest.mark.long),
        pytest.param("delta in a catalog", marks=pytest.mark.long),
    ],
)
def test_a_table_is_loaded_as_it_is_and_then_what_is_appended(source, table, format_):
    there = table(format_)
    appended(there, {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    appended(there, {"id": 3, "name": "c"})
    loads = source(**of_table(there), key_columns=["id"])
    loads.run()
    assert ids(loads.new()) == [1, 2, 3]
    assert loads.run()["position"] is None
    for n in (4, 5):
        appended(there, {"id": n, "name": "d"})
    loads.run()
    assert loads.new() == [{"id": 4, "name": "d"}, {"id": 5, "name": "d"}]
    assert loads.run()["position"] is None


@pytest.mark.long
@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_changes_of_a_table_are_refused_skipped_or_sent(source, table, format_):
    there = table(format_, mode="merge", merge=Merge(["id"]), properties=FEED if format_ == "delta" else {})

    def merge(*pairs):
        there.produce(*(({"id": key}, None if name is None else {"id": key, "name": name}) for key, name in pairs))
        there.run()

    merge((1, "a"), (2, "b"), (3, "c"))
    given = of_table(there) | {"key_columns": ["id"]}
    fails, skips, sends = source(**given), source(**given, changes="skip"), source(**given, changes="send")
    for loads in (fails, skips, sends):
        loads.run()
        assert ids(loads.new()) == [1, 2, 3]
    merge((1, "A"), (2, None), (4, "d"))
    merge((1, "AA"), (4, None), (5, "e"))
    skips.run()
    assert skips.new() == []
    sends.run()
    assert sorted(sends.records()[3:], key=str) == [
        ({"id": 1}, {"id": 1, "name": "AA"}),
        ({"id": 2}, None),
        ({"id": 4}, None),
        ({"id": 5}, {"id": 5, "name": "e"}),
    ]
    assert sends.run()["position"] is None
    # An error ends the session, so they come last.
    with pytest.raises(ConnectError, match="changes or deletes rows.*spark.input.changes"):
        fails.run()


@pytest.mark.long
def test_a_query_may_not_drop_what_says_that_rows_are_deleted(source, table):
    there = table("iceberg", mode="merge", merge=Merge(["id"]))
    loads = source(**of_table(there), key_columns=["id"], changes="send")
    for name in "ab":
        appended(there, ({"id": 1}, {"id": 1, "name": name}))
        if name == "a":
            loads.run()
    with pytest.raises(ConnectError, match="spark.sql drops the column __deleted"):
        loads.run(sql="SELECT id, name FROM input")


@pytest.mark.long
def test_delete_files_of_iceberg_are_told(source, table):
    there = table(
        "iceberg",
        mode="merge",
        merge=Merge(["id"]),
        properties={"write.merge.mode": "merge-on-read", "format-version": "2"},
    )
    loads = source(**of_table(there), key_columns=["id"], changes="send")
    appended(there, ({"id": 1}, {"id": 1, "name": "a"}), ({"id": 2}, {"id": 2, "name": "b"}))
    loads.run()
    appended(there, ({"id": 1}, {"id": 1, "name": "A"}))
    with pytest.raises(ConnectError, match=r"has delete files \(merge-on-read\).*to copy-on-write"):
        loads.run()


@pytest.mark.long
def test_a_table_that_was_made_anew_or_has_no_feed_is_told(source, table):
    there = table("delta")
    appended(there, {"id": 1, "name": "a"})
    loads = source(**of_table(there), key_columns=["id"], changes="send")
    loads.run()
    appended(there, {"id": 2, "name": "b"})
    with pytest.raises(ConnectError, match="has no change data feed.*ALTER TABLE.*reset the offsets"):
        loads.run()
    with pytest.raises(ConnectError, match="is of another table: it was made anew"):
        loads.position = loads.position | {"table": "other"}
        loads.run()
    iceberg = table("iceberg")
    appended(iceberg, {"id": 1, "name": "a"})
    loads = source(**of_table(iceberg))
    loads.run()
    loads.position = {"snapshot": 5}
    with pytest.raises(ConnectError, match="the snapshot 5, which was loaded last, is not in the history"):
        loads.run()
