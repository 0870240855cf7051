"""SQL Server and Oracle, which these tests never run on: their URLs, and their SQL compared with what SQLAlchemy
compiles.
"""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, oracle

from connect.api import ConnectError, Password, Schema, SchemaType
from connectors.sql.dialects import dialect_of
from connectors.sql.dialects.alchemy import OracleDialect, SqlServerDialect
from connectors.sql.tables import ReflectedColumn, TableId
from connectors.sql.types import TypeOptions
from connectors.sql.urls import parse_jdbc_url
from connectors.sql.write_dialects import write_dialect

COMPILERS: dict[str, Any] = {
    "sqlserver": mssql.dialect(paramstyle="qmark"),  # type: ignore[no-untyped-call]
    "oracle": oracle.dialect(paramstyle="qmark"),  # type: ignore[no-untyped-call]
}


def compiled(kind: str, made: Any) -> str:
    return str(made.compile(dialect=COMPILERS[kind])).replace(" ", "").replace("\n", "")


def named(name: str) -> Any:
    return sa.column(sa.sql.quoted_name(name, quote=True))


ODBC = "driver=ODBC+Driver+18+for+SQL+Server"
DESCRIBED = "(DESCRIPTION=(ADDRESS=(PROTOCOL=tcps)(HOST=h)(PORT=2484))(CONNECT_DATA=(SERVICE_NAME=s)))"


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("jdbc:sqlserver://h;databaseName=d", f"mssql+pyodbc://u:p@h:1433/d?{ODBC}"),
        ("jdbc:sqlserver://h:1500;database=d;encrypt=true;trustServerCertificate=true", f"mssql+pyodbc://u:p@h:1500/d?Encrypt=yes&TrustServerCertificate=yes&{ODBC}"),
        (r"jdbc:sqlserver://h\i;databaseName={a;b}", f"mssql+pyodbc://u:p@h\\i/a%3Bb?{ODBC}"),
        ("jdbc:oracle:thin:@//h:1521/s", "oracle+oracledb://u:p@h:1521?service_name=s"),
        ("jdbc:oracle:thin:@h:1521/s", "oracle+oracledb://u:p@h:1521?service_name=s"),
        ("jdbc:oracle:thin:@h:1521:X", "oracle+oracledb://u:p@h:1521/X"),
        ("jdbc:oracle:thin:@alias", "oracle+oracledb://u:p@alias"),
        ("jdbc:oracle:thin:@tcps://h:2484/s", f"oracle+oracledb://u:p@{DESCRIBED}"),
        ("jdbc:trino://h:8080/c?http_scheme=https", "trino://u:p@h:8080/c?http_scheme=https"),
    ],
)  # fmt: skip
def test_urls_become_sqlalchemys(url: str, made: str) -> None:
    shown = parse_jdbc_url(url, "u", Password("p")).sqlalchemy_url()
    assert shown.render_as_string(hide_password=False) == made


def test_credentials_of_a_url_are_taken_and_never_shown() -> None:
    for url in ("jdbc:sqlserver://h;user=me;password=s3cret", "jdbc:oracle:thin:me/s3cret@//h:1521/s"):
        database = parse_jdbc_url(url)
        assert database.user == "me" and database.password is not None and database.password.reveal() == "s3cret"
        assert "s3cret" not in str(database)


@given(st.text())
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    for url in (
        f"jdbc:sqlserver://{text}",
        f"jdbc:oracle:thin:{text}",
        f"jdbc:oracle:thin:@//{text}",
        f"jdbc:x:{text}",
    ):
        try:
            str(parse_jdbc_url(url))
        except ConnectError as error:
            assert str(error)


def test_instants_are_compared_exactly() -> None:
    for zoned, kind in ((False, mssql.DATETIME2(6)), (True, mssql.DATETIMEOFFSET(6))):
        dialect = SqlServerDialect()
        assert dialect.instant("[made]", zoned=zoned).replace(" ", "") == compiled(
            "sqlserver", sa.cast(named("made"), kind)
        )
    assert SqlServerDialect(timezone="Europe/Berlin").literal(1_000_001, zoned=False) == (
        "CAST('1970-01-01 01:00:01.000001' AS DATETIME2(6))"
    )
    assert OracleDialect().literal(1_000_001, zoned=True) == "TIMESTAMP '1970-01-01 00:00:01.000001+00:00'"
    assert OracleDialect().integer('"id"').replace(" ", "") == compiled(
        "oracle", sa.cast(named("id"), oracle.NUMBER(19))
    )


@pytest.mark.parametrize("kind", COMPILERS)
def test_names_are_quoted_as_sqlalchemy_does(kind: str) -> None:
    preparer = COMPILERS[kind].identifier_preparer
    for name in ("order", "Ü", "a b", 'q"', "br]", "[x"):
        assert dialect_of(kind).quote(name) == preparer.quote_identifier(name) == write_dialect(kind).quote(name)


def test_columns_have_the_schemas_of_their_types() -> None:
    types: dict[str, tuple[Any, Schema]] = {
        "n": (sa.Numeric(10, 2), Schema.decimal(2, 10)),
        "u": (mssql.UNIQUEIDENTIFIER(), Schema(SchemaType.STRING)),
        "b": (mssql.BIT(), Schema(SchemaType.BOOLEAN)),
        "s": (mssql.SMALLINT(), Schema(SchemaType.INT16)),
        "o": (mssql.DATETIMEOFFSET(), Schema.timestamp()),
        "r": (oracle.RAW(), Schema(SchemaType.BYTES)),
        "d": (oracle.BINARY_DOUBLE(), Schema(SchemaType.FLOAT64)),
        "c": (oracle.CLOB(), Schema(SchemaType.STRING)),
    }
    reflected = [ReflectedColumn(name, kind, nullable=False) for name, (kind, _) in types.items()]
    columns, skipped = OracleDialect().columns(reflected, TypeOptions())
    assert not skipped and {c.name: c.schema for c in columns} == {name: made for name, (_, made) in types.items()}
    assert columns[0].select == """TO_CHAR("n", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')"""


@pytest.mark.parametrize("kind", COMPILERS)
def test_statements_that_write_are_those_that_sqlalchemy_compiles(kind: str) -> None:
    q = sa.sql.quoted_name
    table = sa.table(q("t", quote=True), named("k"), named("a"), schema=q("s", quote=True))
    dialect, table_id = write_dialect(kind), TableId(None, "s", "t")

    changed = sa.update(table).values({"a": sa.bindparam("x")}).where(table.c["k"] == sa.bindparam("y"))
    for ours, theirs in (
        (dialect.insert(table_id, ["k"], ["a"]), sa.insert(table)),
        (dialect.update(table_id, ["k"], ["a"]), changed),
        (dialect.delete(table_id, ["k"]), sa.delete(table).where(table.c["k"] == sa.bindparam("y"))),
    ):
        # SQLAlchemy names the table before a column in conditions
        prefix = dialect.table(table_id) + "."
        assert ours.sql.replace(" ", "") == compiled(kind, theirs).replace(prefix, "")


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("sqlserver", {"int64": mssql.BIGINT(), "float64": mssql.FLOAT(), "boolean": mssql.BIT(), "string": mssql.NVARCHAR(None), "bytes": mssql.VARBINARY("max"), "timestamp": mssql.DATETIME2(), "timestamptz": mssql.DATETIMEOFFSET(), "uuid": mssql.UNIQUEIDENTIFIER()}),
        ("oracle", {"int64": oracle.NUMBER(19, 0), "float32": oracle.BINARY_FLOAT(), "float64": oracle.BINARY_DOUBLE(), "string": oracle.CLOB(), "bytes": oracle.BLOB(), "date": oracle.DATE(), "timestamp": oracle.TIMESTAMP(), "timestamptz": oracle.TIMESTAMP(timezone=True)}),
    ],
)  # fmt: skip
def test_types_of_new_columns_are_known_to_sqlalchemy(kind: str, types: dict[str, Any]) -> None:
    for ours, theirs in types.items():
        assert write_dialect(kind).types[ours].replace(" ", "").lower() == compiled(kind, theirs).lower()
