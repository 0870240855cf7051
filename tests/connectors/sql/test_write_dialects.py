"""SQL for writing, for databases that are available and for those that are not."""

from __future__ import annotations

import pytest

from connect.api import ConnectError, DataError, Schema, SchemaType
from connectors.sql.tables import TableId
from connectors.sql.write_dialects import parse_table, write_dialect
from connectors.sql.write_types import spec_of

TABLE = TableId(None, "s", "t")
COLUMNS = [
    spec_of("id", Schema(SchemaType.INT64), key=True),
    spec_of("code", Schema(SchemaType.STRING), key=True),
    spec_of("note", Schema(SchemaType.STRING, optional=True)),
    spec_of("n", Schema(SchemaType.INT32, default=7)),
    spec_of("d", Schema.decimal(2)),
]

DDL = {
    "postgresql": 'CREATE TABLE "s"."t" ("id" BIGINT NOT NULL,"code" TEXT NOT NULL,"note" TEXT NULL,"n" INT DEFAULT 7,'
    '"d" DECIMAL NOT NULL,PRIMARY KEY("id","code"))',
    "mysql": "CREATE TABLE `s`.`t` (`id` BIGINT NOT NULL,`code` VARCHAR(255) NOT NULL,`note` TEXT NULL,`n` INT DEFAULT 7,"
    "`d` DECIMAL(65,2) NOT NULL,PRIMARY KEY(`id`,`code`))",
    "sqlserver": "CREATE TABLE [s].[t] ([id] BIGINT NOT NULL,[code] NVARCHAR(450) NOT NULL,[note] NVARCHAR(MAX) NULL,"
    "[n] INT DEFAULT 7,[d] DECIMAL(38,2) NOT NULL,PRIMARY KEY([id],[code]))",
    "oracle": 'CREATE TABLE "s"."t" ("id" NUMBER(19,0) NOT NULL,"code" VARCHAR2(4000) NOT NULL,"note" CLOB NULL,'
    '"n" NUMBER(10,0) DEFAULT 7,"d" NUMBER(*,2) NOT NULL,PRIMARY KEY("id","code"))',
    "db2": 'CREATE TABLE "s"."t" ("id" BIGINT NOT NULL,"code" VARCHAR(255) NOT NULL,"note" VARCHAR(32672) NULL,'
    '"n" INTEGER DEFAULT 7,"d" DECIMAL(31,2) NOT NULL,PRIMARY KEY("id","code"))',
}
UPSERTS = {
    "postgresql": 'INSERT INTO "s"."t"("k","a") VALUES(?,?) ON CONFLICT ("k") DO UPDATE SET "a"=EXCLUDED."a"',
    "mysql": "INSERT INTO `s`.`t`(`k`,`a`) VALUES(%s,%s) ON DUPLICATE KEY UPDATE `a`=VALUES(`a`)",
    "sqlserver": "MERGE INTO [s].[t] WITH (HOLDLOCK) AS target USING (SELECT ? AS [k], ? AS [a]) AS incoming "
    "ON (target.[k]=incoming.[k]) WHEN MATCHED THEN UPDATE SET target.[a]=incoming.[a] "
    "WHEN NOT MATCHED THEN INSERT([k],[a]) VALUES(incoming.[k],incoming.[a]);",
    "oracle": 'MERGE INTO "s"."t" target USING (SELECT ? "k", ? "a" FROM DUAL) incoming ON (target."k"=incoming."k") '
    'WHEN MATCHED THEN UPDATE SET target."a"=incoming."a" WHEN NOT MATCHED THEN INSERT("k","a") '
    'VALUES(incoming."k",incoming."a")',
    "db2": 'MERGE INTO "s"."t" AS target USING TABLE (VALUES(?,?)) AS incoming("k","a") ON (target."k"=incoming."k") '
    'WHEN MATCHED THEN UPDATE SET target."a"=incoming."a" WHEN NOT MATCHED THEN INSERT("k","a") '
    'VALUES(incoming."k",incoming."a")',
}


@pytest.mark.parametrize("kind", DDL)
def test_tables_are_made_in_each_databases_types(kind: str) -> None:
    assert write_dialect(kind).create(TABLE, COLUMNS).replace("\n", "") == DDL[kind]


@pytest.mark.parametrize("kind", UPSERTS)
def test_upserts_are_in_each_databases_words(kind: str) -> None:
    assert write_dialect(kind).upsert(TABLE, ["k"], ["a"]).sql == UPSERTS[kind]


def test_statements_take_their_parameters_in_order() -> None:
    made = write_dialect("sqlite").update(TableId(None, None, "t"), ["k"], ["a", "b"])
    assert (made.sql, made.parameters) == ("UPDATE `t` SET `a` = ?, `b` = ? WHERE `k` = ?", ("a", "b", "k"))
    assert write_dialect("db2", quoting=False).delete(TABLE, ["k"]).sql == "DELETE FROM s.t WHERE k = ?"


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("t", (None, None, "t")),
        ("s.t", (None, "s", "t")),
        ('"a.b".[c d]', (None, "a.b", "c d")),
        ("`x`.y.z", ("x", "y", "z")),
        ('"a""b"', (None, None, 'a"b')),
    ],
)
def test_names_of_tables_are_taken_apart(name: str, table: tuple[str | None, ...]) -> None:
    assert tuple(parse_table(name)) == table


def test_a_type_without_a_column_type_is_refused() -> None:
    with pytest.raises(ConnectError, match="is not a table's name"):
        parse_table("a.b.c.d")
    with pytest.raises(DataError, match=r"field 'x' is a map.*Flatten"):
        spec_of("x", Schema.map(Schema(SchemaType.STRING), Schema(SchemaType.STRING)))
    with pytest.raises(DataError, match="an array, which mysql has no column type for"):
        write_dialect("mysql").create(TABLE, [spec_of("x", Schema.array(Schema(SchemaType.INT32)))])
