"""The MariaDB source follows a real server over restarts, lost connections, DDL and quiet times."""

from __future__ import annotations

import itertools
import json
import random
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from connect.api import ConnectError, RecordBatch, RetriableConnectError
from connect.bench import Bench
from connectors.mysql.source import MariaDbSource
from tests.proofs import effort
from tests.servers.mariadb import MariaDbServer
from tests.support.debezium.interrupted import statements_of_tables, through_kills
from tests.support.debezium.replay_mariadb import settled
from tests.support.debezium.workload import MariaDbWorkload, rebuilt
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers
_numbers = itertools.count(1)


class SourceDatabase:
    """A separate database, and a connector for it with its history."""

    def __init__(self, server: MariaDbServer, folder: Path) -> None:
        self.server, self.number = server, next(_numbers)
        self.name = f"following_{self.number}"
        self.history = folder / "history"
        self.connection = server.connect("")
        self.execute(f"CREATE DATABASE {self.name}", f"USE {self.name}")

    def execute(self, *statements: str) -> list[Any]:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def properties(self, **more: str) -> dict[str, str]:
        return {
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.server.id": str(7000 + self.number),
            "database.include.list": self.name,
            "topic.prefix": "t",
            "poll.interval.ms": "20",
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.history),
        } | {name.replace("_", "."): value for name, value in more.items()}

    def bench(self, **more: str) -> Bench:
        return Bench(MariaDbSource, self.properties(**more))

    def problems(self, **more: str) -> dict[str, str]:
        config = parse(MariaDbSource.config_class, self.properties(**more))
        return {problem.key: problem.message for problem in MariaDbSource.check(config)}

    def close(self) -> None:
        self.execute(f"DROP DATABASE {self.name}")
        self.connection.close()


@pytest.fixture
def database(mariadb_server: MariaDbServer, tmp_path: Path) -> Iterator[SourceDatabase]:
    made = SourceDatabase(mariadb_server, tmp_path)
    yield made
    made.close()


def values(batches: list[RecordBatch]) -> list[tuple[str, Any]]:
    return [
        (r.value["op"], (r.value["after"] or r.value["before"])["id"])
        for batch in batches
        for r in batch.records()
        if r.value is not None and "after" in r.value
    ]


def position(bench: Bench) -> dict[str, Any]:
    return dict(bench.offset({"server": "t"}) or {})


def written(offset: dict[str, Any]) -> RecordBatch:
    return RecordBatch("x", pa.array([], pa.string()), None, source_partition={"server": "t"}, source_offset=offset)


@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_a_snapshot_that_is_killed_goes_on_at_its_next_table(
    database: SourceDatabase, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.mysql.snapshot._BLOCK_BYTES", 200)
    database.execute(*statements_of_tables())
    through_kills(
        database.bench(snapshot_max_threads=str(2 - seed % 2)),
        database.execute,
        lambda name: database.execute(f"SELECT * FROM {name}"),
        lambda task: settled(database.server, task),
        seed,
    )


BIG_ROWS = 4000


@pytest.mark.parametrize("seed", range(effort(2, 32)))
def test_a_snapshot_that_is_killed_inside_a_large_table_goes_on_there(
    database: SourceDatabase, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the attempts rows are updated, deleted, written and get other keys, also across what was read."""
    monkeypatch.setattr("connectors.mysql.snapshot._BLOCK_BYTES", 3000)
    dice, kind = random.Random(seed), (seed + 1) % 4
    key = (
        "id int PRIMARY KEY, part bigint",
        "id int, part varchar(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci, PRIMARY KEY (part, id)",
        "id varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci PRIMARY KEY, part bigint",
        "id int, part varbinary(9), PRIMARY KEY (part, id)",
    )[kind]
    database.execute(f"CREATE TABLE big (word varchar(80), {key})")
    parts = ("", "ä", "A", "b''\\\\", "é1", "Z", "zz") if kind % 2 else tuple(range(-3, 4))
    for begin in range(0, BIG_ROWS, 1000):
        rows = ", ".join(f"('first', {n}, '{parts[n % 7]}')" for n in range(begin, begin + 1000))
        database.execute(f"INSERT INTO big (word, id, part) VALUES {rows}")
    bench = database.bench(snapshot_max_threads=str(1 + seed % 2))
    seen: list[RecordBatch] = []
    delivered: set[int] = set()
    changed: set[int] = set()
    for _ in range(2):
        with bench.task() as running:
            made = running.poll_rows(dice.randrange(900, 1500))
            bench.commit(committed := made[: max(1, len(made) - dice.randrange(3))])
        seen += made
        told = json.loads((bench.offset({"server": "t"}) or {})["tidegate_snapshot_parts"])
        assert told[f"{database.name}.big"][0] == (["part", "id"] if kind % 2 else ["id"])
        for _ in range(60):
            number = dice.randrange(BIG_ROWS)
            database.execute(f"UPDATE big SET word = 'u{dice.random()}' WHERE id = '{number}'")
            database.execute(f"DELETE FROM big WHERE id = '{dice.randrange(BIG_ROWS)}'")
            other, new = dice.randrange(BIG_ROWS), -dice.randrange(1, 10**9)
            database.execute(f"UPDATE big SET id = {new}, part = '{dice.choice(parts)}' WHERE id = '{other}'")
            changed |= {number, other, new}
        delivered |= {
            int(r.value["after"]["id"]) for b in committed for r in b.records() if r.value and r.value["op"] == "r"
        }
    with bench.task() as running:
        last = settled(database.server, running.task)
        bench.commit(last)
    seen += last
    again = {int(r.value["after"]["id"]) for b in last for r in b.records() if r.value and r.value["op"] == "r"}
    again &= delivered
    assert len(again - changed) < 150, "only rows of the last batches, whose offsets were not committed, are read again"
    assert "tidegate_snapshot_parts" not in (bench.offset({"server": "t"}) or {})
    columns = ("part", "id") if kind % 2 else ("id",)
    kept = database.execute("SELECT id, part, word FROM big")
    truth = {tuple({"id": n, "part": part}[name] for name in columns): word for n, part, word in kept}
    assert {k: row["word"] for k, row in rebuilt(seen)["big"].items()} == truth


@pytest.mark.parametrize("seed", range(effort(1, 20)))
def test_tables_are_rebuilt_over_restarts_and_lost_connections(database: SourceDatabase, seed: int) -> None:
    dice = random.Random(seed)
    connections = [database.server.connect(database.name) for _ in range(2)]
    work = MariaDbWorkload(connections, seed)
    work.prepare()
    bench = database.bench(max_queue_size="7", snapshot_max_threads="2", decimal_handling_mode="string")
    seen: list[RecordBatch] = []
    for _ in range(effort(4, 60)):
        with bench.task() as running:
            for _ in range(dice.randrange(1, 8)):
                work.step()
                stream = running.task._stream
                if dice.random() < 0.15 and stream is not None:
                    with suppress(pymysql.err.OperationalError):  # killed before
                        database.execute(f"KILL {stream._connection.thread_id()}")
                try:
                    batches = list(running.task.poll())
                except RetriableConnectError:
                    continue
                seen += batches
                bench.commit(batches[: dice.randrange(len(batches) + 1)])
            # the task dies here: what was delivered after the last commit comes again
    with bench.task() as running:
        seen += settled(database.server, running.task)
    tables = rebuilt(seen)
    for name in ("accounts", "notes"):
        database.connection.begin()
        with database.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            columns = [column[0] for column in cursor.description]
            truth = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        database.connection.commit()
        key = ("id",) if name == "accounts" else ("a", "b")
        made = tables.get(name, {})
        assert set(made) == {tuple(row[k] for k in key) for row in truth}
        for row in truth:
            ours = made[tuple(row[k] for k in key)]
            for column, value in row.items():
                if column in ours and column != "at":
                    assert ours[column] == (str(value) if column == "amount" and value is not None else value), (
                        row,
                        ours,
                    )
    for connection in connections:
        connection.close()


def test_a_position_of_debezium_s_is_taken_up(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(database.server, running.task))
        start = position(bench)
        database.execute("BEGIN", "INSERT INTO t VALUES (2), (3), (4)", "INSERT INTO t VALUES (5)", "COMMIT")
        assert values(settled(database.server, running.task)) == [("c", 2), ("c", 3), ("c", 4), ("c", 5)]
    # as the original leaves it within a transaction: its GTID and the table's announcement are done, and two rows of the next event
    middle = start | {"event": 2, "row": 2, "server_id": 1, "ts_sec": 1}
    bench.commit([written(middle)])
    with bench.task() as running:
        assert values(settled(database.server, running.task)) == [("c", 4), ("c", 5)]
    by_file = {"file": start["file"], "pos": start["pos"], "server_id": 1}  # of a server whose GTIDs nobody asked for
    lines = database.history.read_text().replace(f'"gtids": "{start["gtids"]}"', '"unused": ""')
    database.history.write_text(lines)
    bench.commit([written(by_file)])
    with bench.task() as running:
        assert values(settled(database.server, running.task)) == [("c", 2), ("c", 3), ("c", 4), ("c", 5)]


def test_the_structure_is_that_of_the_position(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a text)", "INSERT INTO t VALUES (1, 'x')")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(database.server, running.task))
    database.execute("INSERT INTO t VALUES (2, 'y')", "ALTER TABLE t CHANGE a b varchar(9), ADD z int DEFAULT 4 FIRST")
    database.execute("INSERT INTO t VALUES (7, 3, 'z')")
    with bench.task() as running:
        records = [
            r.value["after"]
            for batch in settled(database.server, running.task)
            for r in batch.records()
            if r.value is not None
        ]
    assert records == [{"id": 2, "a": "y"}, {"z": 7, "id": 3, "b": "z"}]


def test_a_table_is_read_as_it_was_after_a_poll_that_failed_behind_an_alteration(database: SourceDatabase) -> None:
    """The structure goes back to the position's; shapes that were made of a later one must not be used again."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, a text)", "INSERT INTO t VALUES (1, 'x')")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(database.server, running.task))
        database.execute(
            "INSERT INTO t VALUES (2, 'y')", "ALTER TABLE t CHANGE a b varchar(9), ADD z int DEFAULT 4 FIRST"
        )
        database.execute("INSERT INTO t VALUES (7, 3, 'z')")
        stream, decoder = running.task._stream, running.task._decoder
        following = stream.next

        def lost(timeout_s: float) -> bytes | None:
            event: bytes | None = following(timeout_s)
            while event is None and decoder.rows == 1:
                event = following(1)
            if event is None and decoder.rows > 1:  # all of it was fed
                raise pymysql.err.OperationalError(2013, "Lost connection")
            return event

        stream.next = lost
        with pytest.raises(RetriableConnectError):
            for _ in range(1000):
                assert values(running.task.poll()) == []
        records = [
            r.value["after"]
            for batch in settled(database.server, running.task)
            for r in batch.records()
            if r.value is not None
        ]
    assert records == [{"id": 2, "a": "y"}, {"z": 7, "id": 3, "b": "z"}]


def test_a_connection_that_dies_without_a_word_is_given_up(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    bench = database.bench(snapshot_mode="no_data", connect_keep_alive_interval_ms="8000")
    with bench.task() as running:
        settled(database.server, running.task)
        near, far = socket.socketpair()
        with near, far:
            running.task._stream._socket = near  # the server's word does not come through any more
            deadline = time.monotonic() + 60
            with pytest.raises(RetriableConnectError, match="not even the server's heartbeats"):
                while time.monotonic() < deadline:
                    running.task.poll()
        database.execute("INSERT INTO t VALUES (1)")
        assert values(settled(database.server, running.task)) == [("c", 1)]


def test_a_history_that_is_lost_is_told_or_made_anew(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    bench = database.bench(snapshot_mode="no_data")
    with bench.task() as running:
        settled(database.server, running.task)
        database.execute("INSERT INTO t VALUES (1)")
        bench.commit(settled(database.server, running.task))
    database.history.unlink()
    database.execute("INSERT INTO t VALUES (2)")
    with bench.task() as running, pytest.raises(ConnectError, match=r"snapshot\.mode=recovery"):
        running.task.poll()
    bench.properties["snapshot.mode"] = "recovery"
    with bench.task() as running:
        assert values(settled(database.server, running.task)) == [("c", 2)]


def test_a_position_that_is_gone_is_told_or_read_anew(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(database.server, running.task))
    bench.commit([written({"file": "binlog.999999", "pos": 4})])
    with bench.task() as running, pytest.raises(ConnectError, match="when_needed"):
        running.task.poll()
    bench.properties["snapshot.mode"] = "when_needed"
    with bench.task() as running:
        assert values(settled(database.server, running.task)) == [("r", 1)]


def test_heartbeats_move_on_what_is_not_captured(database: SourceDatabase) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other (id int)", "CREATE TABLE beats (at int)"
    )
    bench = database.bench(
        table_include_list=f"{database.name}.t",
        heartbeat_interval_ms="1",
        heartbeat_action_query=f"INSERT INTO {database.name}.beats VALUES (1)",
    )
    with bench.task() as running:
        for _ in range(4):
            running.task.poll()
        database.execute("INSERT INTO other VALUES (1)")
        target = database.execute("SHOW MASTER STATUS")[0]
        deadline = time.monotonic() + 60
        while True:
            beats = list(running.task.poll())
            offset = beats[-1].source_offset if beats else None
            if offset is not None and (offset["file"], offset["pos"]) >= (target[0], target[1]):
                break
            assert time.monotonic() < deadline, (offset, target)
    assert beats[-1].topic == "__debezium-heartbeat.t" and next(beats[-1].records()).key == {"serverName": "t"}
    assert database.execute("SELECT count(*) FROM beats")[0][0] > 0


def test_validation_reports_problems_of_the_database(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    assert database.problems() == {}
    assert f"{database.name}.t" in database.problems(table_include_list="t")["table.include.list"]
    assert "Could not connect" in database.problems(database_port="1")["database.hostname"]
    assert "Access denied" in database.problems(database_password="wrong")["database.password"]
    assert "server itself" in database.problems(database_server_id="1")["database.server.id"]
    plain = f"plain{database.number}"
    database.execute(f"CREATE USER {plain}@'127.0.0.1'", f"GRANT SELECT ON {database.name}.* TO {plain}@'127.0.0.1'")
    config = parse(MariaDbSource.config_class, database.properties(database_user=plain))
    told = " ".join(problem.message for problem in MariaDbSource.check(config))
    for right in ("REPLICATION SLAVE", "REPLICATION CLIENT", "RELOAD"):
        assert f"GRANT {right} ON *.* TO '{plain}'@'127.0.0.1'" in told
    database.execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
    try:
        assert "binlog_row_image = 'FULL'" in database.problems()["database.hostname"]
    finally:
        database.execute("SET GLOBAL binlog_row_image = 'FULL'", f"DROP USER {plain}@'127.0.0.1'")


def test_a_server_id_that_another_reader_takes_is_told(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    bench = database.bench(snapshot_mode="no_data")
    with bench.task() as running:
        bench.commit(settled(database.server, running.task))
        assert "a number of its own" in database.problems()["database.server.id"]
        with database.bench(snapshot_mode="no_data").task() as other:
            settled(database.server, other.task)
            deadline = time.monotonic() + 60
            told = r"another reader has taken server id \d+: give database\.server\.id"
            with pytest.raises(ConnectError, match=told):
                while time.monotonic() < deadline:
                    running.task.poll()


def test_rows_in_which_large_values_are_left_out(database: SourceDatabase) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, word varchar(9), big text)", "INSERT INTO t VALUES (1, 'a', 'b')"
    )
    bench = database.bench(snapshot_mode="no_data")
    with bench.task() as running:
        settled(database.server, running.task)
        database.execute(
            "SET SESSION binlog_row_image = 'NOBLOB'",
            "UPDATE t SET word = 'c'",
            "SET SESSION binlog_row_image = 'FULL'",
        )
        (values,) = [r.value for batch in settled(database.server, running.task) for r in batch.records()]
    assert values["after"] == {"id": 1, "word": "c", "big": "__debezium_unavailable_value"}


def test_a_compressed_log_is_read(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, word text)")
    bench = database.bench(snapshot_mode="no_data")
    database.execute("SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10")
    try:
        with bench.task() as running:
            settled(database.server, running.task)
            database.execute(
                "INSERT INTO t SELECT seq, repeat('word ', 40) FROM seq_1_to_50", "UPDATE t SET word = 'x' WHERE id = 7"
            )
            database.execute(
                "ALTER TABLE t ADD COLUMN a_long_name_of_a_column varchar(200) DEFAULT 'a long default of a column'"
            )
            database.execute("DELETE FROM t WHERE id = 50")
            batches = settled(database.server, running.task)
    finally:
        database.execute("SET GLOBAL log_bin_compress = OFF")
    assert values(batches) == [*(("c", i) for i in range(1, 51)), ("u", 7), ("d", 50)]
    assert {len(batch.value_schema.fields[0].schema.fields) for batch in batches if batch.value_schema is not None} == {
        2,
        3,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("notification.enabled.channels", "sink"),
        ("converters", "isbn"),
        ("snapshot.mode", "custom"),
        ("snapshot.locking.mode", "custom"),
        ("database.include.list", "["),
        ("schema.history.internal", "io.debezium.storage.redis.history.RedisSchemaHistory"),
        ("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"),
        ("database.server.id", "0"),
        ("time.precision.mode", "adaptive"),
    ],
)
def test_unsupported_settings_are_refused(key: str, value: str) -> None:
    config = {"database.hostname": "h", "database.user": "u", "topic.prefix": "t", key: value}
    assert [error for entry in validate(MariaDbSource.config_class, config) for error in entry.errors]
