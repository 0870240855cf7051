"""The SQLite source follows a database that other connections and processes write."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, DataError, RecordBatch, RetriableConnectError
from connect.bench import Bench
from connectors.sqlite.source import SqliteSource
from connectors.sqlite.types import Modes, form_of
from tests.proofs import effort
from tests.support.debezium.interrupted import statements_of_tables, through_kills
from tests.support.debezium.sqlite_workload import TABLES, SqliteWorkload
from tests.support.debezium.workload import rebuilt
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError


class SourceDatabase:
    """A database, a connection of the application's and a connector for it."""

    def __init__(self, path: Path, journal: str = "wal") -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute(f"PRAGMA journal_mode = {journal}")
        self.connection.execute("PRAGMA synchronous = OFF")

    def execute(self, statement: str, *values: Any) -> Any:
        return self.connection.execute(statement, values)

    def bench(self, **more: str) -> Bench:
        return Bench(SqliteSource, self.properties(**more))

    def properties(self, **more: str) -> dict[str, str]:
        properties = {"database.path": str(self.path), "topic.prefix": "t", "poll.interval.ms": "1"}
        return properties | {name.replace("_", "."): value for name, value in more.items()}

    def problems(self, **more: str) -> dict[str, str]:
        config = parse(SqliteSource.config_class, self.properties(**more))
        return {problem.key: problem.message for problem in SqliteSource.check(config)}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SourceDatabase]:
    made = SourceDatabase(tmp_path / "shop.db")
    yield made
    made.connection.close()


def settled(task: Any) -> list[RecordBatch]:
    """The batches until three consecutive polls are empty; the first polls may only start the task."""
    batches: list[RecordBatch] = []
    idle = 0
    while idle < 3:
        polled = task.poll()
        batches += polled
        idle = 0 if polled else idle + 1
    return batches


def events(batches: list[RecordBatch]) -> list[tuple[Any, ...]]:
    """(table, op, key, row after) of each event; op None for a tombstone."""
    return [
        (
            batch.topic.rpartition(".")[2],
            *(("t", None, None) if r.key is None and r.value["op"] == "t" else ()),
            *((r.value and r.value["op"], *r.key.values(), r.value and r.value["after"]) if r.key is not None else ()),
        )
        for batch in batches
        for r in batch.records()
    ]


@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_a_snapshot_that_is_killed_goes_on_at_its_next_table(database: SourceDatabase, seed: int) -> None:
    for statement in statements_of_tables():
        database.execute(statement)
    through_kills(
        database.bench(max_queue_size="64"),
        database.execute,
        lambda name: database.execute(f"SELECT * FROM {name}").fetchall(),
        settled,
        seed,
    )


BIG: Final = 3000
BIG_KEYS: Final = (
    "id INTEGER PRIMARY KEY, part TEXT",
    "id INT, part TEXT COLLATE NOCASE, PRIMARY KEY (part, id)) WITHOUT ROWID",
    "id TEXT, part TEXT, PRIMARY KEY (id)) WITHOUT ROWID",
    "id INTEGER PRIMARY KEY DESC, part TEXT",
)
"""Tables that a snapshot goes on inside of, and one whose rows have numbers of their own."""


@pytest.mark.parametrize("seed", range(effort(3, 60)))
def test_a_snapshot_that_is_killed_inside_a_table_goes_on_there(database: SourceDatabase, seed: int) -> None:
    """Between the attempts rows are updated, deleted, written and get other keys; then the table is made anew, and read before."""
    dice = random.Random(seed)
    key = BIG_KEYS[seed % 4]
    create = f"CREATE TABLE big (word TEXT, {key}{'' if 'ROWID' in key else ')'}"
    database.execute(create)
    names = ("part", "id") if seed % 4 == 1 else ("id",)
    insert = "INSERT INTO big (word, id, part) VALUES (?, ?, ?)"
    database.execute("BEGIN")
    for n in dice.sample(range(BIG), BIG):
        database.execute(insert, "first", n, "aBcÄ"[n % 4] + str(n % 5))
    database.execute("COMMIT")
    bench = database.bench(max_queue_size="100", skipped_operations="none")
    seen: list[RecordBatch] = []
    delivered: list[int] = []
    for attempt in range(3):
        with bench.task() as running:
            made = running.poll_rows(dice.randrange(300, 900))
            bench.commit(committed := made[: max(1, len(made) - dice.randrange(3))])
        seen += made
        parts = json.loads((bench.offset({"server": "t"}) or {}).get("tidegate_snapshot_parts", "{}"))
        assert ("main.big" in parts) == (seed % 4 != 3)
        delivered += [int(r.value["after"]["id"]) for b in committed for r in b.records() if r.value["op"] == "r"]
        for _ in range(60):
            number, other = (dice.randrange(BIG) for _ in range(2))
            database.execute("UPDATE big SET word = ? WHERE id = ?", f"u{dice.random()}", number)
            database.execute("DELETE FROM big WHERE id = ?", dice.randrange(BIG))
            new, part = dice.choice([-1, 1]) * dice.randrange(BIG, 10**9), dice.choice(["", "zz", "A9"])
            database.execute("UPDATE OR IGNORE big SET id = ?, part = ? WHERE id = ?", new, part, other)
        if attempt == 1 and dice.random() < 0.5:
            database.execute("VACUUM")
        if attempt == 2 and seed % 3 == 1:
            database.execute("ALTER TABLE big RENAME TO old")
            database.execute(create)
            database.execute("INSERT INTO big (word, id, part) SELECT 'new', id, part FROM old WHERE id % 3")
            database.execute("DROP TABLE old")
    with bench.task() as running:
        bench.commit(last := settled(running.task))
    seen += last
    if seed % 4 != 3:
        assert len(delivered) < len(set(delivered)) + 700, "what was committed is not read again"
    assert "tidegate_snapshot_parts" not in (bench.offset({"server": "t"}) or {})
    kept = database.execute("SELECT id, part, word FROM big").fetchall()
    truth = {tuple({"id": n, "part": part}[name] for name in names): word for n, part, word in kept}
    assert {k: row["word"] for k, row in rebuilt(seen)["big"].items()} == truth


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("seed", range(effort(1, 20)))
def test_tables_are_rebuilt_over_restarts_and_changes_of_structure(tmp_path: Path, seed: int, journal: str) -> None:
    dice = random.Random(seed)
    database = SourceDatabase(tmp_path / "shop.db", journal)
    work = SqliteWorkload(database.path, seed)
    work.prepare(journal)
    bench = database.bench(max_queue_size="25", skipped_operations="none")
    seen: list[RecordBatch] = []
    for _ in range(effort(6, 60)):
        with bench.task() as running:
            if journal == "delete":  # a snapshot lets nobody write there until it ends
                seen += settled(running.task)
                bench.commit(seen[-1:])
            for _ in range(dice.randrange(1, 8)):
                work.step()
                batches = list(running.task.poll())
                seen += batches
                done = batches[: dice.randrange(len(batches) + 1)]
                bench.commit(done)
                running.task.committed([(b.source_partition, b.source_offset) for b in done])
            # the task dies here: what was delivered after the last commit comes again
        for _ in range(dice.randrange(20)):
            work.step()
    with bench.task() as running:
        seen += settled(running.task)
        running.task.committed([(b.source_partition, b.source_offset) for b in seen[-1:]])
        running.task.poll()
    tables = rebuilt(seen)
    for name, key in TABLES.items():
        batches = database.execute(f"SELECT * FROM {name}")
        columns = [c[0] for c in batches.description]
        truth = {tuple(row[columns.index(k)] for k in key): dict(zip(columns, row, strict=True)) for row in batches}
        made = tables[name]
        assert set(made) == set(truth)
        for number, row in truth.items():
            defaults = {c: int(c.removeprefix("extra")) for c in columns if c.startswith("extra")}
            # a column that was added with a default later is not repeated for rows that rest
            assert {**defaults, **made[number]} == row
    assert database.execute("SELECT count(*) FROM tidegate_changes WHERE op <> 'p'").fetchone() == (0,)
    work.connection.close()
    database.connection.close()


def test_rows_that_were_replaced_are_deleted_and_rolled_back_ones_never_seen(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, code TEXT UNIQUE COLLATE NOCASE)")
    bench = database.bench(tombstones_on_delete="false")
    with bench.task() as running:
        settled(running.task)
        database.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        database.execute("BEGIN")
        database.execute("DELETE FROM t")
        database.execute("ROLLBACK")
        database.execute("INSERT OR REPLACE INTO t VALUES (3, 'A')")
        database.execute("INSERT OR IGNORE INTO t VALUES (4, 'B')")
        database.execute("UPDATE OR REPLACE t SET code = 'B' WHERE id = 3")
        with pytest.raises(sqlite3.IntegrityError):
            database.execute("INSERT INTO t VALUES (5, 'b')")
        database.execute("PRAGMA recursive_triggers = ON")
        database.execute("INSERT OR REPLACE INTO t VALUES (6, 'b')")
        changes = [(op, key) for _, op, key, _ in events(settled(running.task))]
    assert changes == [("c", 1), ("c", 2), ("d", 1), ("c", 3), ("d", 2), ("u", 3), ("d", 3), ("c", 6)]


def test_the_row_that_an_application_s_trigger_left_is_told_last(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)")
    bench = database.bench()
    with bench.task() as running:
        settled(running.task)
        database.execute(
            "CREATE TRIGGER mine AFTER INSERT ON t BEGIN UPDATE t SET word = 'mine' WHERE id = NEW.id; END"
        )
        database.execute("INSERT INTO t VALUES (1, 'theirs')")
        changes = events(settled(running.task))
    assert changes[-1][-1] == {"id": 1, "word": "mine"}


def test_a_changed_structure_begins_with_the_right_record(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)")
    database.execute("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    bench = database.bench(skipped_operations="none")
    with bench.task() as running:
        bench.commit(settled(running.task))
        database.execute("UPDATE t SET word = 'uno' WHERE id = 1")
        database.execute("ALTER TABLE t ADD COLUMN n INT DEFAULT 7")
        database.execute("INSERT INTO t VALUES (3, 'three', 3)")
        batches = settled(running.task)
        bench.commit(batches)
        # what the old triggers wrote has the old columns; rows with more than the default are told again
        assert events(batches) == [
            ("t", "u", 1, {"id": 1, "word": "uno"}),
            ("t", "c", 3, {"id": 3, "word": "three"}),
            ("t", "u", 3, {"id": 3, "word": "three", "n": 3}),
        ]
        told = batches[-1].value_schema
        assert told is not None and told.field("after").schema.field("n").schema.default == 7
        database.execute("UPDATE t SET n = 8 WHERE id = 1")
        assert events(settled(running.task)) == [("t", "u", 1, {"id": 1, "word": "uno", "n": 8})]
    # long offline: a rename, a table that is made again, one that is new, one that is gone
    database.execute("ALTER TABLE t RENAME COLUMN word TO text")
    database.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY)")
    database.execute("INSERT INTO fresh VALUES (1)")
    bench.commit(batches)
    with bench.task() as running:
        batches = settled(running.task)
        bench.commit(batches)
    assert ("t", "u", 3, {"id": 3, "text": "three", "n": 3}) in events(batches)
    assert ("fresh", "r", 1, {"id": 1}) in events(batches)
    database.connection.executescript(
        "CREATE TABLE again (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO again SELECT id, text FROM t WHERE id > 1; "
        "DROP TABLE t; ALTER TABLE again RENAME TO t; DROP TABLE fresh; INSERT INTO t VALUES (9, 'nine')"
    )
    with bench.task() as running:
        batches = settled(running.task)
    assert [event[:3] for event in events(batches)] == [("t", "t", None), ("t", "r", 2), ("t", "r", 3), ("t", "r", 9)]


def test_a_snapshot_and_the_log_meet_without_a_gap(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT)")
    database.connection.executemany("INSERT INTO t VALUES (?, 'old')", [(n,) for n in range(1000)])
    bench = database.bench(max_queue_size="100", skipped_operations="none")
    with bench.task() as running:
        first = list(running.task.poll())
        database.execute("UPDATE t SET word = 'new' WHERE id >= 500")
        database.execute("DELETE FROM t WHERE id < 10")
        batches = [*first, *settled(running.task)]
    marks = [r.value["source"]["snapshot"] for b in batches for r in b.records() if r.value is not None]
    assert marks[:1000] == ["first", *["true"] * 998, "last"]
    tables = rebuilt(batches)
    assert len(tables["t"]) == 990 and tables["t"][(999,)]["word"] == "new"


def test_a_position_that_the_log_does_not_have_is_told_or_read_anew(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (1)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
    assert SqliteSource.alter_offsets(bench.properties, [({"server": "t"}, None)])
    assert database.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%tidegate%'").fetchall() == []
    with bench.task() as running, pytest.raises(ConnectError, match="when_needed"):
        running.task.poll()
    bench.properties["snapshot.mode"] = "when_needed"
    with bench.task() as running:
        assert [event[1:3] for event in events(settled(running.task))] == [("r", 1)]
    with pytest.raises(ConnectError, match="should have log"):
        SqliteSource.alter_offsets(bench.properties, [({"server": "t"}, {"seq": 1})])


def test_tables_that_are_not_captured_any_more_lose_their_triggers(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, secret TEXT, word TEXT)")
    database.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")

    def triggers() -> set[str]:
        return {row[0] for row in database.execute("SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger'")}

    bench = database.bench(column_exclude_list="main.a.secret", column_mask_with_3_chars="main.a.word")
    with bench.task() as running:
        bench.commit(settled(running.task))
        database.execute("INSERT INTO a VALUES (1, 'secret', 'word')")
        assert events(settled(running.task)) == [("a", "c", 1, {"id": 1, "word": "***"})]
        assert "secret" not in str(database.execute("SELECT * FROM tidegate_changes").fetchall())
    assert triggers() == {"a", "b"}
    database.execute("ALTER TABLE a DROP COLUMN secret")
    bench.properties["table.include.list"] = "main.b"
    with bench.task() as running:
        settled(running.task)
    assert triggers() == {"b"}
    bench.properties["change.log.drop.on.stop"] = "true"
    with bench.task() as running:
        settled(running.task)
    assert triggers() == set()


def test_rows_read_for_a_look_leave_the_database_and_a_connector_that_starts_meanwhile_alone(
    database: SourceDatabase,
) -> None:
    database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, word TEXT)")
    database.execute("INSERT INTO a VALUES (1, 'x')")
    look = Bench(SqliteSource, SqliteSource.preview_properties(database.properties()))
    bench = database.bench()
    with look.task() as looking:
        assert [entry[:2] for entry in events(settled(looking.task))] == [("a", "r")]
        assert looking.task.at_rest
        assert database.execute("SELECT name FROM sqlite_schema").fetchall() == [("a",)]
        with bench.task() as running:
            bench.commit(settled(running.task))
    database.execute("UPDATE a SET word = 'y'")
    with look.task() as looking:
        settled(looking.task)
    with bench.task() as running:
        assert [entry[:2] for entry in events(settled(running.task))] == [("a", "u")]


def test_a_change_log_that_is_switched_off_goes_with_a_snapshot_only(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    database.execute("INSERT INTO a VALUES (1)")
    with pytest.raises(ConfigError, match="with snapshot.mode=initial, it should be true"):
        database.problems(change_log_enabled="false")
    bench = database.bench(change_log_enabled="false", snapshot_mode="initial_only")
    with bench.task() as running:
        bench.commit(settled(running.task))
    database.execute("INSERT INTO a VALUES (2)")
    with bench.task() as running:
        assert settled(running.task) == []


def test_validation_reports_problems_of_the_database(database: SourceDatabase, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    assert database.problems() == {}
    assert "main.t" in database.problems(table_include_list="t")["table.include.list"]
    assert "no file" in database.problems(database_path=str(tmp_path / "none.db"))["database.path"]
    (tmp_path / "text.db").write_text("hello " * 1000)
    assert "not a database" in database.problems(database_path=str(tmp_path / "text.db"))["database.path"]
    assert "not captured" in database.problems(message_key_columns="main.t:nothing")["message.key.columns"]
    database.execute("BEGIN IMMEDIATE")
    assert "lock" in database.problems(database_busy_timeout_ms="1")["database.path"]
    bench = database.bench(database_busy_timeout_ms="1")
    with bench.task() as running, pytest.raises(RetriableConnectError, match="another process"):
        running.task.poll()
    database.execute("COMMIT")
    with bench.task() as running:
        settled(running.task)
    assert "topic.prefix=t" in database.problems(topic_prefix="other")["change.log.name"]
    other = Bench(SqliteSource, database.properties(topic_prefix="other"))
    with other.task() as running, pytest.raises(ConnectError, match=r"change\.log\.name"):
        running.task.poll()


def test_a_value_that_its_column_cannot_hold_is_named(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT)")
    database.execute("INSERT INTO t VALUES (1, 'many')")
    with (
        database.bench().task() as running,
        pytest.raises(DataError, match=r"'n' of table main\.t.*'many' is no integer"),
    ):
        settled(running.task)


def test_a_change_with_such_a_value_is_named_with_its_place_in_the_log(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(10,2))")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
        for price in ("1.5", "0.1 + 0.2", "1e6 + 0.1 + 0.2", "'cheap'", "2"):
            database.execute(f"INSERT INTO t (price) VALUES ({price})")
        words = r"'price' of table main\.t.*'cheap' is no number.*DELETE FROM tidegate_changes WHERE seq = (\d+)"
        with pytest.raises(DataError, match=words) as told:
            settled(running.task)
        number = re.search(words, str(told.value))[1]  # type: ignore[index]
        database.execute(f"DELETE FROM tidegate_changes WHERE seq = {number}")
        prices = [after["price"] for *_, after in events(settled(running.task))]
    assert prices == [Decimal(text) for text in ("1.50", "0.30", "1000000.30", "2.00")]


def test_connectors_of_one_file_leave_the_logs_of_others_alone(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (1)")
    benches = [database.bench()]
    benches.append(Bench(SqliteSource, database.properties(topic_prefix="other", change_log_name="log2")))
    for _ in range(2):  # the first ones make the logs
        for bench in benches:
            with bench.task() as running:
                batches = settled(running.task)
                bench.commit(batches)
                assert {batch.topic.rpartition(".")[2] for batch in batches} <= {"t"}
    assert {row[0] for row in database.execute("SELECT tbl_name FROM sqlite_schema WHERE type = 'trigger'")} == {"t"}


def test_writers_in_other_processes_are_followed_while_they_write(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, who INT)")
    code = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=60)\n"
        "connection.execute('PRAGMA synchronous = OFF')\n"
        "for n in range(100):\n"
        "    connection.execute('INSERT INTO t (who) VALUES (?)', [sys.argv[2]])\n"
        "    connection.commit()\n"
    )
    bench = database.bench()
    with bench.task() as running:
        settled(running.task)
        writers = [subprocess.Popen([sys.executable, "-c", code, database.path, str(n)]) for n in range(2)]
        rows = running.poll_rows(200, timeout_s=120)
        assert [writer.wait(60) for writer in writers] == [0, 0]
    told = [r.value["after"]["id"] for b in rows for r in b.records()]
    assert told == list(range(1, 201))


def test_stop_ends_a_poll_that_waits(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    bench = database.bench(poll_interval_ms="3600000")
    with bench.task() as running:
        while running.task.poll():  # the snapshot
            pass
        waiting = threading.Thread(target=running.task.poll)
        waiting.start()
        running.context.stopping.set()
        waiting.join(60)
        assert not waiting.is_alive()


_CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    st.binary(max_size=8),
)


@settings(max_examples=30)
@given(st.lists(st.tuples(_CELLS, _CELLS), min_size=1, max_size=5))
def test_the_log_keeps_values_of_every_storage_class_as_they_are(rows: list[tuple[Any, Any]]) -> None:
    from connectors.sqlite.changelog import ChangeLog
    from connectors.sqlite.tables import Column, Table

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT)")
    columns = (Column("id", "INTEGER", False), Column("a", "", True), Column("b", "TEXT", True))
    log = ChangeLog(connection, "log", "t")
    log.open()
    log.renew(lambda: [Table("t", columns, ("id",), ("rowid",))], copy=False)
    for a, b in rows:
        connection.execute("INSERT INTO t (a, b) VALUES (?, ?)", [a, b])
    kept = connection.execute("SELECT n1, n2, n3, typeof(n2), typeof(n3) FROM log ORDER BY seq").fetchall()
    assert kept == connection.execute("SELECT id, a, b, typeof(a), typeof(b) FROM t").fetchall()
    connection.close()


_DECLARED = st.sampled_from(
    ["INTEGER", "BOOLEAN", "REAL", "TEXT", "BLOB", "", "NUMERIC", "DECIMAL(9,2)", "DATE", "DATETIME", "TIME"]
)
_MODES = st.builds(
    Modes,
    st.sampled_from(["precise", "string", "double"]),
    st.sampled_from(["adaptive", "connect", "isostring", "microseconds", "nanoseconds"]),
    st.sampled_from(["bytes", "hex", "base64", "base64-url-safe"]),
)


@settings(max_examples=100)
@given(_DECLARED, _MODES, st.lists(_CELLS, max_size=4))
def test_any_value_has_its_column_s_form_or_is_refused(declared: str, modes: Modes, values: list[Any]) -> None:
    form = form_of(declared, modes)
    try:
        made = form.convert(values)
    except DataError:
        return
    assert made.type == form.schema.arrow_type and len(made) == len(values)
    assert [v is None for v in made.to_pylist()] == [v is None for v in values]
    if declared == "INTEGER":
        assert all(
            int(number) == value for number, value in zip(values, made.to_pylist(), strict=True) if number is not None
        )


def test_changes_read_before_a_heartbeat_query_that_failed_are_delivered(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    beats = {"heartbeat_interval_ms": "1", "heartbeat_action_query": "INSERT INTO beats VALUES (1)"}
    bench = database.bench(table_include_list="main.t", **beats)
    seen: list[int] = []
    failures = 0
    with bench.task() as running:

        def poll() -> None:
            nonlocal failures
            try:
                batches = running.task.poll()
            except ConnectError:
                failures += 1
            else:
                seen.extend(key for _, _, key, *_ in events([b for b in batches if "heartbeat" not in b.topic]))

        for n in range(5):
            if n:
                database.execute("INSERT INTO t VALUES (?)", n)
            while failures <= n:  # each heartbeat fails, after the changes were read
                time.sleep(0.002)
                poll()
        database.execute("INSERT INTO t VALUES (0)")
        assert seen == []
        database.execute("CREATE TABLE beats (n INTEGER)")
        deadline = time.monotonic() + 20
        while len(seen) < 5 and time.monotonic() < deadline:
            poll()
    assert seen == [1, 2, 3, 4, 0]
