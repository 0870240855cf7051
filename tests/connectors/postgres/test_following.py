"""The PostgreSQL source follows a real database over restarts, lost connections and quiet times."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from connect.api import ConnectError, RecordBatch, RetriableConnectError
from connect.bench import Bench
from connectors.postgres import setup
from connectors.postgres.connections import ReplicationStream
from connectors.postgres.setup import drop_slot
from connectors.postgres.source import PostgresSource
from tests.proofs import effort
from tests.servers.postgres import PostgresServer
from tests.support.debezium.interrupted import statements_of_tables, through_kills
from tests.support.debezium.replay import settled
from tests.support.debezium.workload import Workload, rebuilt
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers
_numbers = itertools.count()


class SourceDatabase:
    """A separate database, and a connector for it with its slot."""

    def __init__(self, server: PostgresServer) -> None:
        self.server, self.name = server, f"following_{next(_numbers)}"
        with server.connect("postgres") as root:
            root.execute(f"CREATE DATABASE {self.name}".encode())
        self.connection = server.connect(self.name)

    def execute(self, statement: str) -> Any:
        return self.connection.execute(statement.encode())

    def properties(self, **more: str) -> dict[str, str]:
        return {
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.dbname": self.name,
            "topic.prefix": "t",
            "slot.name": self.name,
            "poll.interval.ms": "20",
        } | {name.replace("_", "."): value for name, value in more.items()}

    def bench(self, **more: str) -> Bench:
        return Bench(PostgresSource, self.properties(**more))

    def problems(self, **more: str) -> dict[str, str]:
        config = parse(PostgresSource.config_class, self.properties(**more))
        problems: dict[str, str] = {}
        for problem in PostgresSource.check(config):
            problems[problem.key] = f"{problems.get(problem.key, '')} {problem.message}"
        return problems

    def close(self) -> None:
        drop_slot(self.connection, self.name)
        self.connection.close()


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[SourceDatabase]:
    made = SourceDatabase(postgres_server)
    yield made
    made.close()


def values(batches: list[RecordBatch]) -> list[tuple[str, Any]]:
    return [
        (r.value["op"], (r.value["after"] or r.value["before"])["id"])
        for batch in batches
        for r in batch.records()
        if r.value is not None and "after" in r.value
    ]


@pytest.mark.parametrize("seed", range(effort(1, 20)))
def test_tables_are_rebuilt_over_restarts_and_lost_connections(database: SourceDatabase, seed: int) -> None:
    dice = random.Random(seed)
    connections = [database.server.connect(database.name) for _ in range(2)]
    work = Workload(connections, seed)
    work.prepare()
    bench = database.bench(max_queue_size="7", snapshot_max_threads="2", snapshot_max_threads_multiplier="3")
    seen: list[RecordBatch] = []
    for _ in range(effort(6, 60)):
        with bench.task() as running:
            for _ in range(dice.randrange(1, 8)):
                work.step()
                if dice.random() < 0.15:
                    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
                try:
                    batches = list(running.task.poll())
                except RetriableConnectError:
                    continue
                seen += batches
                bench.commit(batches[: dice.randrange(len(batches) + 1)])
            # the task dies here: what was delivered after the last commit comes again
    with bench.task() as running:
        seen += settled(running.task, quiet=10)
    tables = rebuilt(seen)
    for name in ("accounts", "notes"):
        columns = [c[0] for c in database.execute(f"SELECT * FROM {name} LIMIT 0").description]
        truth = [dict(zip(columns, row, strict=True)) for row in database.execute(f"SELECT * FROM {name}").fetchall()]
        key = ("id",) if name == "accounts" else ("a", "b")
        made = tables.get(name, {})
        assert set(made) == {tuple(row[k] for k in key) for row in truth}
        for row in truth:
            ours = made[tuple(row[k] for k in key)]
            # a column that was added with a default later is not repeated for rows that rest
            for column, value in row.items():
                if column in ours and column != "at":
                    assert ours[column] == value, (name, row, ours)
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_a_snapshot_that_is_killed_goes_on_at_its_next_table(
    database: SourceDatabase, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.postgres.snapshot._BLOCK_ROWS", 10)
    for statement in statements_of_tables():
        database.execute(statement)
    bench = database.bench(snapshot_max_threads=str(2 - seed % 2))
    through_kills(
        bench,
        database.execute,
        lambda name: database.execute(f"SELECT * FROM {name}").fetchall(),
        lambda task: settled(task, quiet=5),
        seed,
    )


BIG_ROWS = 5000


def reads(batches: list[RecordBatch]) -> list[int]:
    return [
        r.value["after"]["id"] for b in batches for r in b.records() if r.value is not None and r.value["op"] == "r"
    ]


@pytest.mark.parametrize("seed", range(effort(2, 30)))
@pytest.mark.parametrize("rewritten", [False, pytest.param(True, marks=[pytest.mark.proof, pytest.mark.long])])
def test_a_snapshot_that_is_killed_inside_a_large_table_goes_on_there(
    database: SourceDatabase, seed: int, rewritten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the attempts rows are updated, moved to blocks that were read, deleted and written; ``large`` is stored beside
    the table, so that updates don't tell it.
    """
    monkeypatch.setattr("connectors.postgres.snapshot._BLOCK_ROWS", 50)
    monkeypatch.setattr("connectors.postgres.pieces._PIECE_BLOCKS", 8)
    dice = random.Random(seed)
    database.execute("CREATE TABLE big (id int PRIMARY KEY, word text, large text)")
    database.execute("ALTER TABLE big ALTER large SET STORAGE EXTERNAL, SET (autovacuum_enabled = off)")
    database.execute(
        f"INSERT INTO big SELECT n, repeat('w', 200), repeat('l', 2100) || n FROM generate_series(1, {BIG_ROWS * 2}) n"
    )
    database.execute(f"DELETE FROM big WHERE id > {BIG_ROWS} OR id % 10 = 0")
    database.execute("VACUUM big")  # there is room in all blocks
    bench = database.bench(snapshot_max_threads=str(1 + seed % 2))
    seen: list[RecordBatch] = []
    delivered: set[int] = set()
    for _ in range(2 + seed % 2):
        with bench.task() as running:
            made = running.poll_rows(dice.randrange(600, 900))
            bench.commit(committed := made[: max(1, len(made) - dice.randrange(3))])
            while "tidegate_snapshot_parts" not in (offset := bench.offset({"server": "t"}) or {}):
                made += running.poll_rows(50)  # the other reader may be ahead of the first piece
                bench.commit(committed := made)
        seen += made
        block, _, xmin = json.loads(offset["tidegate_snapshot_parts"])["public.big"]
        assert block > 0 and xmin > 0
        for _ in range(40):
            number = dice.randrange(1, BIG_ROWS)
            database.execute(f"UPDATE big SET word = 'u{dice.random()}{'x' * 190}' WHERE id = {number}")
            database.execute(f"DELETE FROM big WHERE id = {dice.randrange(1, BIG_ROWS)}")
            new = BIG_ROWS + dice.randrange(1000)
            database.execute(f"INSERT INTO big VALUES ({new}, 'n', repeat('l', 2200)) ON CONFLICT DO NOTHING")
        delivered |= set(reads(committed))
    if rewritten:
        database.execute("VACUUM FULL big")
    with bench.task() as running:
        last = settled(running.task, quiet=5)
        bench.commit(last)
    seen += last
    again = delivered & set(reads(last))
    if rewritten:
        assert len(again) > len(delivered) * 0.8
    else:
        assert len(again) < len(delivered) * 0.7, "only the last piece and rows that changed are read again"
    assert "tidegate_snapshot_parts" not in (bench.offset({"server": "t"}) or {})
    truth = {row[0]: row[1:] for row in database.execute("SELECT id, word, large FROM big").fetchall()}
    found_rows = {}
    for each in (record for batch in seen for record in batch.records()):
        event = each.value
        if event is None or event["op"] == "d":
            found_rows.pop(each.key["id"], None)
            continue
        row = event["after"]
        if row["large"] == "__debezium_unavailable_value":
            # a row that was deleted before it could be read has no earlier value, and its delete follows
            row = {**row, "large": found_rows.get(row["id"], ("", "?"))[1]}
        found_rows[row["id"]] = (row["word"], row["large"])
    assert found_rows == truth


def test_a_snapshot_whose_slot_is_gone_begins_anew(database: SourceDatabase) -> None:
    for statement in statements_of_tables():
        database.execute(statement)
    bench = database.bench()
    with bench.task() as running:
        bench.commit(running.poll_rows(90))
    told = running.context.parts_told[0]
    assert {part["name"] for part in told} == {f"public.part{number}" for number in range(12)}
    drop_slot(database.connection, database.name)
    with bench.task() as running:
        made = settled(running.task, quiet=5)
        assert sum(op == "r" for op, _ in values(made)) == 220
        done = running.context.parts_told[-1]
    assert {(part["state"], part["percent"]) for part in done} == {("read", 100.0)}
    assert [part["done"] for part in done] == [0, *[20] * 11]


def test_a_position_of_debezium_s_is_taken_up(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    database.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
    row = database.execute(
        f"SELECT (lsn - '0/0')::int8 FROM pg_create_logical_replication_slot('{database.name}', 'pgoutput')"
    ).fetchone()
    database.execute("INSERT INTO t VALUES (2), (3)")
    bench = database.bench()
    snapshot = {
        "last_snapshot_record": True,
        "lsn": row[0],
        "txId": 5,
        "ts_usec": 1,
        "snapshot": "INITIAL",
        "snapshot_completed": True,
    }
    written = RecordBatch("x", *_nothing(), source_partition={"server": "t"}, source_offset=snapshot)
    bench.commit([written])
    with bench.task() as running:
        batches = settled(running.task)
    assert values(batches) == [("c", 2), ("c", 3)]
    first = next(batch for batch in batches if len(batch))
    lsn = next(iter(first.records())).value["source"]["lsn"]
    xid = next(iter(first.records())).value["source"]["txId"]
    # as the original leaves it in the middle of a transaction
    middle = {"lsn_proc": lsn, "messageType": "INSERT", "lsn_commit": row[0], "lsn": lsn, "txId": xid, "ts_usec": 1}
    bench.commit([written.replace(source_offset=middle)])
    with bench.task() as running:
        assert values(settled(running.task)) == [("c", 3)]


def _nothing() -> tuple[Any, None]:
    import pyarrow as pa

    return pa.array([], pa.string()), None


def test_heartbeats_let_the_server_forget_what_concerns_no_captured_table(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int)")
    more = {"table_include_list": "public.t", "publication_autocreate_mode": "filtered", "heartbeat_interval_ms": "1"}
    bench = database.bench(**more, status_update_interval_ms="10")

    def confirmed() -> int:
        query = (
            f"SELECT (confirmed_flush_lsn - '0/0')::int8 FROM pg_replication_slots WHERE slot_name = '{database.name}'"
        )
        return int(database.execute(query).fetchone()[0])

    with bench.task() as running:
        for _ in range(3):
            running.task.poll()
        database.execute("INSERT INTO other SELECT generate_series(1, 5000)")
        target = int(database.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::int8").fetchone()[0])
        deadline = time.monotonic() + 60
        beats: list[RecordBatch] = []
        while confirmed() < target:
            assert time.monotonic() < deadline, (confirmed(), target)
            batches = running.task.poll()
            beats += batches
            running.task.committed([(b.source_partition, b.source_offset) for b in batches if b.source_offset])
    assert {batch.topic for batch in beats} == {"__debezium-heartbeat.t"}
    record = next(beats[0].records())
    assert record.key == {"serverName": "t"} and list(record.value) == ["ts_ms"]


def test_validation_reports_problems_of_the_database(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE keyless (id int); CREATE TABLE t (id int PRIMARY KEY)")
    assert database.problems() == {}
    assert "REPLICA IDENTITY FULL" in database.problems(table_include_list="public.keyless")["table.include.list"]
    assert "public.t" in database.problems(table_include_list="t")["table.include.list"]
    assert "does not exist" in database.problems(database_dbname="nowhere")["database.dbname"]
    assert "Could not connect" in database.problems(database_port="1")["database.hostname"]
    database.execute("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN")
    problems = database.problems(database_user="plain")
    assert "ALTER ROLE" in problems["database.user"] and "filtered" in problems["publication.autocreate.mode"]
    assert "CREATE PUBLICATION" in database.problems(publication_autocreate_mode="disabled")["publication.name"]
    database.execute(f"SELECT pg_create_logical_replication_slot('{database.name}', 'test_decoding')")
    assert "test_decoding" in database.problems()["slot.name"]
    more = {"guardrail_collections_max": "1", "guardrail_collections_limit_action": "fail"}
    assert "2 tables are captured" in database.problems(**more)["guardrail.collections.max"]


def test_rights_that_are_missing_are_told_before_it_starts(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    role = f"reader_{database.name}"
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'right'")
    database.server.ask_password_of(role)
    mine = {"database_user": role, "database_password": "right", "publication_autocreate_mode": "filtered"}
    assert (
        "password authentication failed"
        in database.problems(**mine | {"database_password": "wrong"})["database.password"]
    )
    problems = database.problems(**mine)
    assert f'GRANT SELECT ON "public"."t" TO "{role}"' in problems["database.user"]
    assert "GRANT CREATE ON DATABASE" in problems["publication.autocreate.mode"]
    database.execute(f"GRANT SELECT ON t TO {role}; GRANT CREATE ON DATABASE {database.name} TO {role}")
    assert "does not own" in database.problems(**mine)["publication.autocreate.mode"]
    database.execute(f"ALTER TABLE t OWNER TO {role}")
    assert database.problems(**mine) == {}


def test_a_slot_that_another_connector_reads_is_told_before_it_starts(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
        assert database.problems() == {}  # it is the connector's own task
        assert "slot.name of its own" in database.problems(topic_prefix="other")["slot.name"]


def test_tries_are_counted() -> None:
    config = {"database.hostname": "127.0.0.1", "database.port": "1", "database.user": "u", "database.dbname": "d"}
    bench = Bench(PostgresSource, config | {"topic.prefix": "t", "errors.max.retries": "1"})
    with bench.task() as running:
        with pytest.raises(RetriableConnectError):
            running.task.poll()
        with pytest.raises(ConnectError, match=r"2 times in a row, and errors\.max\.retries=1"):
            running.task.poll()


def test_keys_that_say_how_much_is_read_and_told(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)")
    database.execute("COMMENT ON COLUMN b.id IS 'a number'")
    database.execute("INSERT INTO b SELECT generate_series(1, 3000); INSERT INTO a VALUES (1); ANALYZE a; ANALYZE b")
    bench = database.bench(
        snapshot_tables_order_by_row_count="descending",
        snapshot_locking_mode="shared",
        streaming_delay_ms="1",
        xmin_fetch_interval_ms="1",
        max_queue_size_in_bytes="1",
        include_schema_comments="true",
        column_propagate_source_type=".*",
        database_query_timeout_ms="60000",
    )
    with bench.task() as running:
        batches = settled(running.task)
        assert running.task._connection.execute("SHOW statement_timeout").fetchone() == ("1min",)
        bench.commit(batches)
        database.execute("INSERT INTO a VALUES (2), (3)")
        changed = settled(running.task)
    rows = [r for batch in batches for r in batch.records()]
    assert len(rows) == 3001 and rows[0].value["source"]["table"] == "b"
    field = next(b for b in batches if b.topic == "t.public.b").value_schema.field("after").schema.field("id").schema
    assert field.parameters["__debezium.source.column.comment"] == "a number"
    assert [len(batch) for batch in changed] == [1, 1]
    assert all(r.value["source"]["xmin"] > 0 for batch in changed for r in batch.records())
    assert changed[-1].source_offset["xmin"] > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("signal.enabled.channels", "source,jmx"),
        ("notification.enabled.channels", "sink"),
        ("converters", "isbn"),
        ("snapshot.mode", "custom"),
        ("message.key.columns", "nonsense"),
        ("table.include.list", "["),
        ("column.mask.hash.with.salt.x", "a"),
        ("slot.name", "Not-Good"),
        ("replica.identity.autoset.values", "t:SOME"),
        ("slot.stream.params", "streaming=parallel"),
    ],
)
def test_unsupported_settings_are_refused(key: str, value: str) -> None:
    config = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "t", key: value}
    assert [error for entry in validate(PostgresSource.config_class, config) for error in entry.errors]


def test_a_slot_that_another_reads_is_told(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
        again = database.bench(slot_max_retries="0")
        with again.task() as other, pytest.raises(ConnectError, match=r"is taken.*slot\.name"):
            while True:
                other.task.poll()


def test_a_silent_reader_of_the_same_connector_is_ended(
    database: SourceDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that a machine left behind which was cut off. One that speaks is left alone."""
    monkeypatch.setattr(setup, "_LEAST_SILENCE_S", 1.0)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    settings = {"status_update_interval_ms": "100", "slot_retry_delay_ms": "300", "snapshot_mode": "no_data"}

    def follow(task: Any) -> list[RecordBatch]:
        while True:
            with suppress(RetriableConnectError):
                return settled(task)

    with database.bench(**settings).task() as running:
        settled(running.task)
        database.execute("INSERT INTO t VALUES (1)")
        with database.bench(**settings, slot_max_retries="8").task() as other:
            with ThreadPoolExecutor(1) as thread:
                following = thread.submit(follow, other.task)
                while not following.done():
                    running.task.poll()
            with pytest.raises(ConnectError, match="is taken"):
                following.result()
        with database.bench(**settings, slot_max_retries="8").task() as other:
            assert values(follow(other.task)) == [("c", 1)]


def test_a_user_who_may_not_see_readers_ends_none(database: SourceDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "_LEAST_SILENCE_S", 0.0)
    role = f"watcher_{database.name}"
    database.execute(f"CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE {role} LOGIN REPLICATION; CREATE PUBLICATION p")
    properties = database.properties(database_user=role, publication_name="p", status_update_interval_ms="1")
    config = parse(PostgresSource.config_class, properties)
    database.connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [database.name])
    stream = ReplicationStream(config, 0, {"proto_version": "1", "publication_names": "p"})
    looks = setup.SlotReader(config)

    def end_silent() -> list[bool]:
        database.execute(f"SET ROLE {role}")
        try:
            return [looks.end_silent(database.connection), (time.sleep(0.1), looks.end_silent(database.connection))[1]]
        finally:
            database.execute("RESET ROLE")

    try:
        assert end_silent() == [False, False]
        database.execute("REVOKE SELECT ON pg_stat_replication FROM PUBLIC")
        assert end_silent() == [False, False]
        database.execute(f"GRANT SELECT ON pg_stat_replication TO PUBLIC; GRANT pg_read_all_stats TO {role}")
        assert end_silent() == [False, True]
    finally:
        stream.close()
        database.execute(f"GRANT SELECT ON pg_stat_replication TO PUBLIC; DROP ROLE {role}")


def test_a_position_whose_slot_is_gone_is_told_or_read_anew(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
    drop_slot(database.connection, database.name)
    database.execute("INSERT INTO t VALUES (2)")
    with bench.task() as running, pytest.raises(ConnectError, match="when_needed"):
        running.task.poll()
    bench.properties["snapshot.mode"] = "when_needed"
    with bench.task() as running:
        assert values(settled(running.task)) == [("r", 1), ("r", 2)]


def test_a_slot_made_again_under_its_name_is_noticed(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    bench = database.bench()
    with bench.task() as running:
        bench.commit(settled(running.task))
    drop_slot(database.connection, database.name)
    database.execute("INSERT INTO t VALUES (2)")
    database.execute(f"SELECT pg_create_logical_replication_slot('{database.name}', 'pgoutput')")
    with bench.task() as running, pytest.raises(ConnectError, match="made again.*when_needed"):
        running.task.poll()


def test_large_transactions_come_whole_in_the_order_of_their_commits(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, word text)")
    database.execute(f"ALTER DATABASE {database.name} SET logical_decoding_work_mem = '64kB'")
    bench = database.bench(max_queue_size="1000")
    rows = "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series({}, {}) g"
    with (
        database.server.connect(database.name) as first,
        database.server.connect(database.name) as second,
        bench.task() as running,
    ):
        bench.commit(settled(running.task))
        for connection in (first, second):
            connection.execute("BEGIN")
        first.execute(rows.format(1, 2000).encode())
        second.execute(rows.format(10001, 12000).encode())
        first.execute(b"SAVEPOINT s")
        first.execute(rows.format(2001, 4000).encode())
        first.execute(b"ROLLBACK TO s")
        first.execute(rows.format(4001, 5000).encode())
        database.execute("INSERT INTO t VALUES (0, 'small')")
        second.execute(b"COMMIT")
        first.execute(b"COMMIT")
        with database.server.connect(database.name) as third:
            third.execute(b"BEGIN")
            third.execute(rows.format(20001, 23000).encode())
            third.execute(b"ROLLBACK")
        batches = settled(running.task)
        streamed = database.execute(
            f"SELECT stream_txns FROM pg_stat_replication_slots WHERE slot_name = '{database.name}'"
        )
    expected = [0, *range(10001, 12001), *range(1, 2001), *range(4001, 5001)]
    assert values(batches) == [("c", number) for number in expected]
    assert max(len(batch) for batch in batches) < 2000
    assert streamed.fetchone()[0] > 0
