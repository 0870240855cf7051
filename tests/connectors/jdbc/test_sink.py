"""The JDBC sinks on real databases, through their task."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, Record, RecordBatch, RetriableConnectError, Schema, SchemaType, TopicPartition
from connectors.jdbc.sink import DebeziumSinkConnector, JdbcSinkConnector, JdbcSinkTask, _connected
from tests.connectors.jdbc.sink_databases import (
    KEY,
    PLACE,
    DuckDbDatabase,
    MariaDbDatabase,
    PostgresDatabase,
    SinkDatabase,
    SqliteDatabase,
    batch,
    put,
    row,
)
from tidegate.kit.config import parse

BY_KEY = {"pk_mode": "record_key", "auto_create": "true"}
UPSERT = {**BY_KEY, "insert_mode": "upsert", "delete_enabled": "true"}


@pytest.fixture(
    params=[
        "sqlite",
        "duckdb",
        pytest.param("postgres", marks=pytest.mark.servers),
        pytest.param("mariadb", marks=pytest.mark.servers),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkDatabase]:
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path)
    elif request.param == "duckdb":
        yield DuckDbDatabase(tmp_path)
    else:
        made: Any = {"postgres": PostgresDatabase, "mariadb": MariaDbDatabase}[request.param](
            request.getfixturevalue(f"{request.param}_server")
        )
        yield made
        made.close()


def names(database: SinkDatabase) -> list[tuple[Any, ...]]:
    return database.ask("SELECT id, name FROM t ORDER BY id")


def test_upserts_and_deletes_leave_the_last_of_each_key(database: SinkDatabase) -> None:
    with database.bench(**UPSERT).sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2), row(2, "again")])])
        put(running, [batch(3, [row(1, None), row(3), row(3, None), row(4), row(2, None), row(2, "back")])])
        assert names(database) == [(2, "back"), (4, "name 4")]
        assert running.context.errant == []


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """A SQLite file that another process writes to: locks hold between processes."""
    program = f"import sqlite3; o = sqlite3.connect({str(path)!r}, isolation_level=None); o.execute('BEGIN EXCLUSIVE'); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None and other.stdout is not None
        other.stdout.readline()
        yield
        other.stdin.write(b"\n")


def test_rows_that_were_put_before_a_failed_write_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.jdbc.sink._LINGER_S", 3600)
    database = SqliteDatabase(tmp_path)
    with database.bench(**BY_KEY, max_retries="0", connection_attempts="1").sink(PLACE) as running:
        put(running, [batch(0, [row(1)])])
        running.task.put([batch(1, [row(2)])])
        with locked(database.path), pytest.raises(ConnectError):
            running.task.put([])
        running.task.put([])
        assert [number for number, _ in names(database)] == [1, 2]


def test_update_changes_only_rows_that_are_there(database: SinkDatabase) -> None:
    with database.bench(**UPSERT).sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2)])])
    with database.bench(insert_mode="update", pk_mode="record_value", pk_fields="id").sink(PLACE) as running:
        put(running, [batch(0, [row(2, "changed"), row(9)])])
    assert names(database) == [(1, "name 1"), (2, "changed")]


def test_rows_that_the_database_refuses_are_reported_in_its_words_and_the_rest_written(database: SinkDatabase) -> None:
    with database.bench(**BY_KEY).sink(PLACE) as running:
        put(running, [batch(0, [row(1)])])
        put(running, [batch(1, [*(row(n) for n in range(2, 40)), row(1, "twice"), row(5, "twice"), row(40)])])
        assert [number for number, _ in names(database)] == list(range(1, 41))
        assert {(record.key["id"], record.value["name"]) for record, _ in running.context.errant} == {
            (1, "twice"),
            (5, "twice"),
        }
        said = str(running.context.errant[0][1])
        assert any(word in said for word in ("duplicate", "UNIQUE", "Duplicate"))


def test_columns_are_added_and_others_are_told(database: SinkDatabase) -> None:
    wider = Schema.struct({"id": Schema(SchemaType.INT64), "size": Schema(SchemaType.INT32, default=7)})
    with database.bench(**BY_KEY).sink(PLACE) as running:
        put(running, [batch(0, [row(1)])])
        with pytest.raises(ConnectError, match=r"has no column size: .*auto.evolve=true"):
            put(running, [batch(1, [Record("t", {"id": 2, "size": 3}, wider, {"id": 2}, KEY)])])
    with database.bench(**BY_KEY, auto_evolve="true").sink(PLACE) as running:
        put(running, [batch(1, [Record("t", {"id": 2, "size": 3}, wider, {"id": 2}, KEY)])])
    assert database.ask("SELECT id, size FROM t ORDER BY id")[1] == (2, 3)


def test_a_missing_table_and_an_empty_record_are_told(database: SinkDatabase) -> None:
    with database.bench().sink(PLACE) as running:
        with pytest.raises(ConnectError, match=r"is missing in .*auto.create=true"):
            put(running, [batch(0, [row(1)])])
    with database.bench(**BY_KEY).sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2, None), row(3)])])
        assert [record.key for record, _ in running.context.errant] == [{"id": 2}]
        assert "delete.enabled" in str(running.context.errant[0][1])
    assert [number for number, _ in names(database)] == [1, 3]


def test_the_key_may_be_the_place_in_the_log(database: SinkDatabase) -> None:
    with database.bench(pk_mode="kafka", auto_create="true", fields_whitelist="name", insert_mode="upsert").sink(
        PLACE
    ) as running:
        for _ in range(2):
            put(running, [batch(5, [row(1), row(2)])])
    rows = database.ask("SELECT * FROM t ORDER BY 3")
    assert rows == [("t", 0, 5, "name 1"), ("t", 0, 6, "name 2")]


def test_exactly_once_goes_on_where_the_database_is(database: SinkDatabase) -> None:
    bench = database.bench(properties={"tidegate.offsets.table": "offsets", "auto.create": "true"})
    with bench.sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2)])])
        with bench.sink(PLACE, TopicPartition("t", 1)) as second:
            assert second.context.rewinds == {PLACE: 1}  # to see that the last record is still there
            put(second, [batch(0, [row(1), row(2), row(3)]), batch(0, [row(4)], partition=1)])
            # Until the group tells one of them that the partition has moved, each goes on where the other was.
            for task, numbers in ((running, (3, 4, 5)), (second, (4, 5, 6))):
                rows = [batch(numbers[0] - 1, [row(number, f"by {number}") for number in numbers])]
                with pytest.raises(RetriableConnectError, match="another task has taken over t-0: .*(fenced)"):
                    put(task, rows)
                put(task, rows)
    assert [number for number, _ in names(database)] == [1, 2, 3, 4, 4, 5, 6]
    bench.connector_class.alter_offsets(
        bench.properties, [({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})]
    )
    with bench.sink(PLACE) as running:
        assert running.context.rewinds == {PLACE: 1}
        put(running, [batch(1, [row(n) for n in range(7, 10)])])
        bench.connector_class.alter_offsets(
            bench.properties, [({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 2})]
        )
        rows = [batch(4, [row(10)])]
        with pytest.raises(RetriableConnectError, match="fenced"):
            put(running, rows)
        with pytest.raises(
            ConnectError, match="the offset of t-0 in .*offsets.* was set back from 4 to 2 .*restart the task"
        ):
            put(running, rows)


@pytest.mark.parametrize(
    ("restarted", "again", "end"),
    [
        (True, batch(0, [row(7), row(8), row(9)], at_ms=5), 3),
        (True, batch(1, [row(8)], at_ms=5), 2),
        (False, batch(0, [row(7)], at_ms=5), 1),
    ],
    ids=["longer", "as long", "shorter, while the task runs"],
)
def test_a_topic_that_was_made_anew_is_noticed(
    database: SinkDatabase, again: RecordBatch, end: int, *, restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records have offsets that count as written."""
    monkeypatch.setattr(JdbcSinkTask, "_log_end", lambda self, partition: end)
    bench = database.bench(properties={"tidegate.offsets.table": "offsets", "auto.create": "true"})
    with ExitStack() as tasks:
        running = tasks.enter_context(bench.sink(PLACE))
        put(running, [batch(0, [row(1), row(2)])])
        if restarted:
            tasks.pop_all().close()
            running = tasks.enter_context(bench.sink(PLACE))
        with pytest.raises(ConnectError, match="t-0 was written up to offset 1, .*made anew.*offsets reset bench"):
            put(running, [again])
    assert [number for number, _ in names(database)] == [1, 2]
    bench.connector_class.alter_offsets(bench.properties, [({"kafka_topic": "t", "kafka_partition": 0}, None)])
    with bench.sink(PLACE) as running:
        assert running.context.rewinds == {}
        put(running, [again])
    assert len(names(database)) == 2 + len(again)


def test_records_that_come_again_before_the_last_one_are_no_new_topic(
    database: SinkDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [RetriableConnectError("the log does not answer"), 3]

    def log_end(self: JdbcSinkTask, partition: TopicPartition) -> int:
        answer = answers.pop(0)
        if isinstance(answer, RetriableConnectError):
            raise answer
        return answer

    monkeypatch.setattr(JdbcSinkTask, "_log_end", log_end)
    bench = database.bench(properties={"tidegate.offsets.table": "offsets", "auto.create": "true"})
    with bench.sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2)])])
        put(running, [batch(0, [row(1)])])
        put(running, [batch(1, [row(2), row(3)])])
    assert [number for number, _ in names(database)] == [1, 2, 3]


def test_a_table_of_offsets_of_an_earlier_version_goes_on(database: SinkDatabase) -> None:
    bench = database.bench(properties={"tidegate.offsets.table": "offsets", "auto.create": "true"})
    with bench.sink(PLACE) as running:
        put(running, [batch(0, [row(1), row(2)])])
    database.run("ALTER TABLE offsets DROP COLUMN last_timestamp")
    with bench.sink(PLACE) as running:
        assert running.context.rewinds == {PLACE: 2}
        put(running, [batch(1, [row(2), row(3)])])
    assert [number for number, _ in names(database)] == [1, 2, 3]
    assert database.ask("SELECT next_offset, last_timestamp FROM offsets") == [(3, 1)]


def test_two_tasks_that_last_are_told_instead_of_leaving_records_out(database: SinkDatabase) -> None:
    bench = database.bench(properties={"tidegate.offsets.table": "offsets", "auto.create": "true"})
    with bench.sink(PLACE) as running, bench.sink(PLACE) as other, pytest.raises(ConnectError) as told:
        for n in range(20):
            for task in (running, other):
                with suppress(RetriableConnectError):
                    put(task, [batch(n, [row(n)])])
    assert not isinstance(told.value, RetriableConnectError)
    assert "another task takes over t-0 again and again: a connector" in str(told.value)
    assert "give it another tidegate.offsets.table" in str(told.value)


def test_an_instant_is_written_as_the_clock_of_the_time_zone(database: SinkDatabase) -> None:
    with database.bench(**BY_KEY, db_timezone="America/New_York").sink(PLACE) as running:
        put(running, [batch(0, [row(1)])])
    expected = datetime(2024, 7, 1, 8) if database.exact_times else 1_719_835_200_000
    assert database.ask("SELECT happened FROM t") == [(expected,)]


def test_debeziums_events_are_taken_for_what_they_say(database: SinkDatabase) -> None:
    after = Schema.struct(
        {
            "id": Schema(SchemaType.INT64),
            "name": Schema(SchemaType.STRING, optional=True),
            "seen": Schema(SchemaType.INT64, optional=True, name="io.debezium.time.MicroTimestamp", version=1),
        },
        optional=True,
    )
    source = Schema.struct({"table": Schema(SchemaType.STRING)})
    text = Schema(SchemaType.STRING)
    envelope = Schema.struct({"before": after, "after": after, "source": source, "op": text}, optional=True)

    def event(op: str, n: int, name: str = "") -> Record:
        image = {"id": n, "name": name, "seen": 1_000_001}
        value = {"before": None, "after": None if op == "d" else image, "source": {"table": "people"}, "op": op}
        return Record("t", None if op == "-" else value, envelope, {"id": n}, KEY)

    keys = {
        "collection.name.format": "${source.table}",
        "insert.mode": "upsert",
        "primary.key.mode": "record_key",
        "delete.enabled": "true",
        "schema.evolution": "basic",
    }
    with database.bench(DebeziumSinkConnector, keys).sink(PLACE) as running:
        events = [event("c", 1, "a"), event("r", 2, "b"), event("u", 1, "c"), event("d", 2), event("-", 2)]
        put(running, [batch(0, events)])
    seen = datetime(1970, 1, 1, 0, 0, 1, 1) if database.exact_times else 1000
    assert database.ask("SELECT * FROM people") == [(1, "c", seen)]


def test_a_table_that_is_missing_and_not_made_is_told_before(database: SinkDatabase) -> None:
    database.run("CREATE TABLE there (id integer)")

    def told(connector: Any, **more: str) -> list[tuple[str, str]]:
        config = parse(connector.config_class, database.properties(**more))
        return [(problem.key, problem.message) for problem in connector.check(config)]

    (problem,) = told(JdbcSinkConnector, topics="there,t")
    assert problem[0] == "auto.create" and "no table t in " in problem[1] and "auto.create=true" in problem[1]
    (problem,) = told(DebeziumSinkConnector)
    assert problem[0] == "schema.evolution" and "schema.evolution=basic" in problem[1]
    assert told(JdbcSinkConnector, auto_create="true") == told(JdbcSinkConnector, transforms="renamed") == []
    assert told(JdbcSinkConnector, table_name_format="there") == []


@pytest.mark.servers
def test_mariadb_ends_a_transaction_whose_sink_is_gone(mariadb_server: Any) -> None:

    database = MariaDbDatabase(mariadb_server)
    config = parse(JdbcSinkConnector.config_class, database.properties())
    database.run("CREATE TABLE t (id int PRIMARY KEY, n int)")
    database.run("INSERT INTO t VALUES (1, 0)")
    database.run("COMMIT")
    try:
        with closing(_connected(config)) as writer:
            assert writer.ask("SELECT @@idle_transaction_timeout") == [(60,)]
        database.run("SET GLOBAL idle_transaction_timeout = 1")
        with closing(_connected(config)) as gone, closing(_connected(config)) as successor:
            assert gone.ask("SELECT @@idle_transaction_timeout") == [(1,)], "what the server says stays"
            gone.run("UPDATE t SET n = 1")
            successor.run("UPDATE t SET n = 2")
            successor.commit()
            with pytest.raises(RetriableConnectError):
                gone.commit()
        assert database.ask("SELECT n FROM t") == [(2,)]
    finally:
        database.run("SET GLOBAL idle_transaction_timeout = 0")
        database.close()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_check_makes_no_file(kind: str, tmp_path: Path) -> None:
    def told(name: str, **more: str) -> list[str]:
        keys = {"name": "n", "connector.class": "JdbcSink", "topics": "t"}
        keys |= {"connection.url": f"jdbc:{kind}:{tmp_path / name}", **more}
        return [problem.message for problem in JdbcSinkConnector.check(parse(JdbcSinkConnector.config_class, keys))]

    assert told("new.db", **{"auto.create": "true"}) == []
    assert f"no table t in {kind}:{tmp_path}/new.db" in told("new.db")[0]
    assert told("nowhere/new.db", **{"auto.create": "true"}) != []
    assert list(tmp_path.iterdir()) == []


def test_preview_shows_statements_and_changes_nothing(database: SinkDatabase) -> None:
    shown = list(database.bench(**UPSERT).unstarted().preview([batch(0, [row(1), row(2)])]))
    assert shown[0].startswith("CREATE TABLE") and "2 rows" in shown[1]
    with pytest.raises(Exception, match="t"):
        names(database)


changes = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.text(max_size=3).filter(lambda t: "\0" not in t)), max_size=30
)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(puts=st.lists(changes, max_size=3))
def test_any_sequence_of_changes_ends_as_a_dictionary_would(puts: list[Any], tmp_path_factory: Any) -> None:
    database = SqliteDatabase(tmp_path_factory.mktemp("changes"))
    model: dict[int, str] = {}
    with database.bench(**UPSERT).sink(PLACE) as running:
        put(running, [batch(0, [row(99, "first")])])
        offset = 1
        for changed in puts:
            records = [row(n, None if name is None else name + "!") for n, name in changed]
            if records:
                put(running, [batch(offset, records)])
            offset += len(records)
            for n, name in changed:
                model.pop(n, None)
                if name is not None:
                    model[n] = name + "!"
        assert dict(names(database)) == model | {99: "first"}
