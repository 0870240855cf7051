"""Applying DDL statements gives the structure that the server has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import DataError
from connectors.mysql.ddl import apply
from connectors.mysql.forms import Modes
from connectors.mysql.structure import Structure, Table
from connectors.mysql.types import form_of
from tests.servers.mariadb import MariaDbServer

STATEMENTS = (
    "CREATE TABLE a (id int(11) unsigned NOT NULL AUTO_INCREMENT COMMENT 'it''s, (a) key', `b``t` varchar(20) DEFAULT 'x''y\\\\', "
    "e enum('a','b,(c') CHARACTER SET latin1 NOT NULL DEFAULT 'a', s set('x','y') DEFAULT 'x,y', d decimal(10,2) unsigned DEFAULT -0.0, "
    "ts timestamp(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3), dp double precision, ff float(10,2), "
    "n numeric, t text COLLATE utf8mb4_bin, bi bit(3) DEFAULT b'101', bo boolean DEFAULT true, y year, j json, "
    "g int GENERATED ALWAYS AS (id + 1) VIRTUAL, c char(3) CHARACTER SET ascii, nc national varchar(5), bl varbinary(9) DEFAULT x'6162', "
    "dt datetime DEFAULT '2020-01-01', CHECK (d > -1), CONSTRAINT u UNIQUE KEY (e, s), PRIMARY KEY USING BTREE (id), KEY k (`b``t`(3)), "
    "FULLTEXT KEY f (t)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='a table' /* here */ -- and there",
    "ALTER TABLE a ADD COLUMN z int DEFAULT 5 AFTER id, DROP COLUMN c, ADD (p point, q int NOT NULL DEFAULT (1 + 2))",
    "ALTER TABLE a CHANGE `b``t` Renamed varchar(30) CHARACTER SET latin1 NOT NULL DEFAULT 'q' FIRST",
    "ALTER TABLE a MODIFY d decimal(20,4) NULL AFTER y, ALTER z SET DEFAULT 9, ALTER COLUMN dt DROP DEFAULT",
    "ALTER TABLE a RENAME COLUMN z TO zz, ADD INDEX (zz), ALGORITHM=INPLACE, LOCK=NONE",
    "ALTER TABLE a DROP PRIMARY KEY, MODIFY id int unsigned NOT NULL, ADD PRIMARY KEY (id, e)",
    "ALTER TABLE a ADD COLUMN IF NOT EXISTS zz int, DROP COLUMN IF EXISTS nothing, DROP INDEX u, COMMENT 'other'",
    "CREATE TABLE b LIKE a",
    "CREATE TABLE IF NOT EXISTS b (other int)",
    "CREATE OR REPLACE TABLE c (x int NOT NULL, y varchar(9) NOT NULL, w int) CHARSET latin1",
    "CREATE UNIQUE INDEX xy ON c (x, y)",
    "ALTER TABLE c CONVERT TO CHARACTER SET utf8mb4, ADD v text",
    "DROP INDEX xy ON c",
    "ALTER TABLE c ADD UNIQUE INDEX IF NOT EXISTS only_x USING BTREE (x DESC)",
    "RENAME TABLE c TO d, b TO c",
    "ALTER TABLE d RENAME TO e",
    "SET STATEMENT max_statement_time=10 FOR ALTER TABLE e ADD COLUMN late tinyint(1) unsigned zerofill",
    "CREATE TABLE f (`order` int, `key` int, `primary` int PRIMARY KEY, day date) PARTITION BY HASH (`primary`) PARTITIONS 3",
    "ALTER TABLE f COALESCE PARTITION 1",
    "CREATE TABLE g AS SELECT 1",
    "DROP TABLE IF EXISTS c, nothing",
    "TRUNCATE TABLE e",
)


def looks(table: Table) -> list[object]:
    """The parts of a table that affect its events; synonyms of types become the same."""
    columns: list[object] = []
    for column in table.columns:
        # the server keeps these two as others
        kind = {"JSON": "LONGTEXT", "BOOLEAN": "TINYINT"}.get(column.type, column.type)
        form = form_of(replace(column, type=kind), Modes())
        charset = column.charset if kind not in ("ENUM", "SET") else None
        columns.append((column.name, None if form is None else form.schema, column.optional, column.labels, charset))
    return [table.name, columns, table.key_columns]


@pytest.mark.servers
def test_the_server_understands_the_same(mariadb_server: MariaDbServer) -> None:
    with mariadb_server.connect("") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE ddl CHARACTER SET utf8mb4")
        cursor.execute("USE ddl")
        followed = Structure(charsets={"ddl": "utf8mb4"})
        for statement in STATEMENTS:
            cursor.execute(statement)
            if " AS SELECT " in statement:  # the log has such a statement in another form
                cursor.execute("SHOW CREATE TABLE g")
                statement = cursor.fetchone()[1]
            apply(followed, statement, "ddl")
            cursor.execute("SHOW TABLES")
            names = [row[0] for row in cursor.fetchall()]
            told = Structure(charsets={"ddl": "utf8mb4"})
            for name in names:
                cursor.execute(f"SHOW CREATE TABLE `{name}`")
                apply(told, cursor.fetchone()[1], "ddl")
            assert sorted(followed.tables) == sorted(told.tables), statement
            for name, table in told.tables.items():
                made = followed.tables[name]
                for ours, theirs in zip(looks(made), looks(table), strict=True):
                    if isinstance(ours, list):
                        ours = [_without_json(c) for c in ours]
                        theirs = [_without_json(c) for c in theirs]  # type: ignore[attr-defined]
                    assert ours == theirs, statement
        cursor.execute("DROP DATABASE ddl")
        assert apply(followed, "DROP DATABASE ddl", "").changes and not followed.tables


def _without_json(column: tuple[object, ...]) -> tuple[object, ...]:
    return column[:4] if column[0] in ("j", "nc") else column


def test_keys_of_unique_indexes_count_where_there_is_no_primary_key() -> None:
    structure = Structure()
    apply(structure, "CREATE TABLE t (a int, b int NOT NULL, UNIQUE (a), UNIQUE (b))", "d")
    assert structure.tables["d", "t"].key_columns == ("b",)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW v AS SELECT 1",
        "GRANT ALL ON *.* TO x",
        "CREATE TEMPORARY TABLE t (id int)",
        "ALTER USER u IDENTIFIED BY 'x'",
        "DROP PROCEDURE p",
        "CREATE DEFINER=`root`@`localhost` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "FLUSH TABLES",
        "",
    ],
)
def test_irrelevant_statements_change_nothing(sql: str) -> None:
    structure = Structure()
    applied = apply(structure, sql, "d")
    assert not applied.structural and not applied.changes and not structure.tables


_WORDS = ["CREATE", "TABLE", "ALTER", "t", "`a`", "(", ")", ",", "int", "ADD", "DEFAULT", "'x'", "1", "-", "KEY", "PRIMARY", "AFTER",
          "ENUM", "RENAME", "TO", "LIKE", "CHARACTER", "SET", "COLLATE", "=", "DROP", "b'1'", "AS", "/*", "*/", ".", "UNIQUE", "INDEX", "ON"]  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.sampled_from(_WORDS), max_size=25) | st.text(max_size=60).map(lambda text: [text]))
def test_nonsense_is_refused_or_passed_over(words: list[str]) -> None:
    structure = Structure()
    apply(structure, "CREATE TABLE t (id int PRIMARY KEY, a int)", "d")
    try:
        apply(structure, " ".join(words), "d")
    except DataError as error:
        assert "in the statement" in str(error)
