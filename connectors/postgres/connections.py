"""The only module that imports the drivers: plain connections, connections that return Arrow data, and replication over
libpq.

psycopg has no replication mode of its own; its ``pq`` layer provides the functions of libpq for it.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

import adbc_driver_manager
import psycopg
import pyarrow as pa
from psycopg import pq
from psycopg.conninfo import make_conninfo

from connect.api import ConnectError, RetriableConnectError
from connectors.postgres.config import PostgresConfig
from connectors.postgres.types import SESSION
from connectors.sql.errors import is_lost_connection, login_fault
from connectors.sql.urls import PRESENT, require_libpq_files

__all__ = [
    "BLOCK_BYTES",
    "ArrowConnection",
    "ReplicationStream",
    "abort",
    "application",
    "connect",
    "database_errors",
    "lsn_number",
    "lsn_text",
    "replication",
]

BLOCK_BYTES: Final = 1024 * 1024
_EPOCH: Final = 946_684_800
_STATUS: Final = struct.Struct(">cQQQqB")


def lsn_number(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(number: int) -> str:
    return f"{number >> 32:X}/{number & 0xFFFFFFFF:X}"


def application(config: PostgresConfig) -> str:
    """The application name that the server shows for a connector's connections; limited to 63 bytes."""
    return f"tidegate {config.prefix}"[:63]


def _address(config: PostgresConfig) -> str:
    return f"{config.hostname}:{config.port}/{config.database}"


@contextmanager
def database_errors(config: PostgresConfig, doing: str) -> Iterator[None]:
    """Convert the driver's errors to ours: lost connections are retriable."""
    try:
        yield
    except psycopg.OperationalError as error:
        kind = ConnectError if login_fault(error) is not None else RetriableConnectError
        raise kind(f"{doing} {_address(config)}: {str(error).strip()}") from error
    except psycopg.Error as error:
        raise ConnectError(f"{doing} {_address(config)}: {str(error).strip()}") from error
    except adbc_driver_manager.Error as error:
        said = str(error).strip()
        lost = is_lost_connection(error, "postgresql")
        raise (RetriableConnectError if lost else ConnectError)(f"{doing} {_address(config)}: {said}") from error


def _conninfo(config: PostgresConfig, **more: Any) -> str:
    unchecked = bool(config.sslfactory)  # Java's socket factory that does not verify certificates
    mode = config.sslmode.lower()
    parameters = {
        "host": config.hostname,
        "port": config.port,
        "dbname": config.database,
        "user": config.user,
        "password": config.password.reveal() if config.password is not None else None,
        "sslmode": "require" if unchecked and mode.startswith("verify") else mode,
        "sslcert": config.sslcert,
        "sslkey": config.sslkey,
        "sslpassword": config.sslpassword.reveal() if config.sslpassword is not None else None,
        "sslrootcert": None if unchecked else config.sslrootcert,
        "keepalives": int(config.keep_alive),
        **(PRESENT if config.keep_alive else {}),
        "connect_timeout": 10,
        "client_encoding": "UTF8",
        "application_name": application(config),
        "options": SESSION,
        **more,
    }
    require_libpq_files(parameters)
    return make_conninfo("", **{name: value for name, value in parameters.items() if value is not None})


def connect(config: PostgresConfig) -> psycopg.Connection[Any]:
    """A plain connection in autocommit mode. Raises psycopg's errors."""
    options = f"{SESSION} -c statement_timeout={config.query_timeout_ms}"
    connection: psycopg.Connection[Any] = psycopg.connect(_conninfo(config, options=options), autocommit=True)
    for statement in _initial(config):
        connection.execute(statement.encode())
    return connection


def _initial(config: PostgresConfig) -> list[str]:
    return [s.strip() for s in (config.initial_statements or "").split(";") if s.strip()]


class ArrowConnection:
    """A connection that returns rows as Arrow data, through ADBC. Its calls raise ``adbc_driver_manager.Error``."""

    def __init__(self, config: PostgresConfig) -> None:
        import adbc_driver_postgresql.dbapi

        self._connection = adbc_driver_postgresql.dbapi.connect(_conninfo(config), autocommit=True)
        for statement in _initial(config):
            self.run(statement)

    def run(self, statement: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)

    def select(self, statement: str) -> Iterator[pa.RecordBatch]:
        """Rows in blocks of about ``BLOCK_BYTES``."""
        with closing(self._connection.cursor()) as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BLOCK_BYTES)})
            cursor.execute(statement)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def cancel(self) -> None:
        """May be called from another thread."""
        with suppress(Exception):  # the statement may have ended already
            self._connection.adbc_cancel()

    def close(self) -> None:
        with suppress(Exception):  # closing fails on a lost connection
            self._connection.close()


def abort(connection: pq.abc.PGconn) -> None:
    """Called from another thread: makes a connection's running call end as if the connection were lost."""
    with (
        suppress(OSError, psycopg.Error),  # the connection was lost or closed meanwhile
        socket.socket(fileno=os.dup(connection.socket)) as shared,
    ):
        shared.shutdown(socket.SHUT_RDWR)


def replication(config: PostgresConfig) -> pq.abc.PGconn:
    """A connection in replication mode; raises psycopg.OperationalError."""
    made = pq.PGconn.connect(_conninfo(config, replication="database").encode())
    if made.status != pq.ConnStatus.OK:
        text = made.get_error_message()
        made.finish()
        raise psycopg.OperationalError(text)
    return made


def _refusal(result: pq.abc.PGresult) -> psycopg.OperationalError:
    """The server's error with its SQLSTATE."""
    error = psycopg.OperationalError(result.get_error_message() or _ENDED)
    error.sqlstate = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode() or None
    return error


_ENDED: Final = "the server ended the replication"


class ReplicationStream:
    """The changes in a slot from a position on."""

    def __init__(self, config: PostgresConfig, lsn: int, options: dict[str, str]) -> None:
        self._connection = replication(config)
        options_text = ", ".join(
            f"\"{name}\" '{value.replace(chr(39), chr(39) * 2)}'" for name, value in options.items()
        )
        command = f'START_REPLICATION SLOT "{config.slot}" LOGICAL {lsn_text(lsn)} ({options_text})'
        result = self._connection.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            error = _refusal(result)
            self._connection.finish()
            raise error
        self._connection.nonblocking = 1
        self.server_lsn = 0
        """The position up to which the server has examined its log and sent everything."""
        self._flushed = lsn
        self._reply_due = False
        self._last_reply = time.monotonic()
        self._interval = config.status_interval_ms / 1000

    def next(self) -> bytes | None:
        """The plugin's next message with replication's header; None when none is available.

        Raises psycopg.OperationalError.
        """
        while True:
            length, data = self._connection.get_copy_data(1)
            if length == 0:
                self._connection.consume_input()
                length, data = self._connection.get_copy_data(1)
                if length == 0:
                    return None
            if length < 0:
                raise self._ended()
            raw = bytes(data)
            if raw[0] == 119:  # w: XLogData
                return raw
            self.server_lsn = max(self.server_lsn, int.from_bytes(raw[1:9]))
            self._reply_due = self._reply_due or raw[17] == 1

    def _ended(self) -> psycopg.OperationalError:
        result = self._connection.get_result()
        if result is not None:
            return _refusal(result)
        return psycopg.OperationalError(self._connection.get_error_message() or _ENDED)

    def wait(self, seconds: float) -> None:
        select.select([self._connection.socket], [], [], seconds)

    def tell(self, flushed: int | None) -> None:
        """Confirm the position to the server if it is new, was requested, or is due; None: the position is unchanged."""
        if flushed is not None and flushed > self._flushed:
            self._flushed = flushed
        elif not self._reply_due and time.monotonic() - self._last_reply < self._interval:
            return
        now = int((time.time() - _EPOCH) * 1_000_000)
        received = max(self._flushed, self.server_lsn)
        self._connection.put_copy_data(_STATUS.pack(b"r", received, self._flushed, self._flushed, now, 0))
        self._connection.flush()
        self._reply_due, self._last_reply = False, time.monotonic()

    def abort(self) -> None:
        """Called from another thread; see ``abort``."""
        abort(self._connection)

    def close(self) -> None:
        self._connection.finish()
